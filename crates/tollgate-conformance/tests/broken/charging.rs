//! Faults in what is charged, when, and how much of it.

use tollgate_conformance::Family;
use tollgate_core::{Batch, Check, Cost, Op, Settlement, State, Timestamp, Verdicts};

use crate::caught;
use crate::judge::{Judging, States, sound};

/// Judges the batch with every operation changed by `change`, which is told the state of its key.
fn changed(
    states: &mut States,
    batch: &Batch<'_>,
    now: Timestamp,
    change: fn(&Check<'_>, Option<State>, Timestamp) -> Op,
) -> Verdicts {
    let held = states.of(batch);
    let checks: Vec<Check<'_>> = batch
        .checks()
        .iter()
        .zip(held)
        .map(|(check, state)| Check {
            op: change(check, state, now),
            ..*check
        })
        .collect();
    let batch = Batch::new(&checks).unwrap().at(batch.instant());
    sound(states, &batch, now)
}

/// Counts what it denies, too.
fn charges_denials(states: &mut States, batch: &Batch<'_>, now: Timestamp) -> Verdicts {
    let verdicts = sound(states, batch, now);
    if verdicts.is_allowed() {
        return verdicts;
    }
    for check in batch.checks() {
        let Op::Hit(cost) = check.op else { continue };
        // A settlement charges past any limit.
        let op = Op::Settle(Settlement {
            charged_at: now,
            charged: Cost::ONE,
            mark: 0,
            actual: cost.get().saturating_add(1),
        });
        sound(states, &Batch::of_one(&Check { op, ..*check }), now);
    }
    verdicts
}

#[test]
fn a_store_that_charges_denied_hits_is_caught() {
    let store = || Judging::by(charges_denials);
    caught(store(), Family::Golden, &[]);
    caught(store(), Family::Differential, &["gcra", "sliding_log"]);
    caught(store(), Family::Batch, &["one_denial_charges_none"]);
    caught(store(), Family::Hygiene, &["denied_hits_on_fixed_window"]);
}

/// Judges one check after the other, as if each were alone.
fn charges_part_of_a_batch(states: &mut States, batch: &Batch<'_>, now: Timestamp) -> Verdicts {
    let alone = |check| sound(states, &Batch::of_one(check), now).as_slice()[0];
    Verdicts::many(now, batch.checks().iter().map(alone).collect())
}

#[test]
fn a_store_that_charges_part_of_a_denied_batch_is_caught() {
    let store = || Judging::by(charges_part_of_a_batch);
    caught(
        store(),
        Family::Batch,
        &[
            "one_denial_charges_none",
            "a_denial_by_gcra_charges_none",
            "a_hit_that_can_never_fit_charges_none",
        ],
    );
    caught(
        store(),
        Family::Differential,
        &["batches_of_all_algorithms"],
    );
}

/// Answers in the order of its keys.
fn answers_out_of_order(states: &mut States, batch: &Batch<'_>, now: Timestamp) -> Verdicts {
    let mut checks = batch.checks().to_vec();
    checks.sort_by_key(|check| check.key);
    let sorted = Batch::new(&checks).unwrap().at(batch.instant());
    sound(states, &sorted, now)
}

#[test]
fn a_store_that_answers_in_the_order_of_its_keys_is_caught() {
    let cases = [
        "answers_stand_in_the_order_of_the_checks",
        "the_denier_is_told_apart",
    ];
    caught(Judging::by(answers_out_of_order), Family::Batch, &cases);
}

/// Lets a peek stand in the way of the hits beside it.
fn peeks_deny_hits(states: &mut States, batch: &Batch<'_>, now: Timestamp) -> Verdicts {
    let mut untouched = States(states.0.clone());
    let verdicts = sound(&mut untouched, batch, now);
    if verdicts.is_allowed() {
        *states = untouched;
    }
    verdicts
}

#[test]
fn a_store_where_a_denied_peek_stops_a_batch_is_caught() {
    let cases = [
        "a_peek_that_would_be_denied_does_not_stand_in_the_way",
        "a_settlement_is_carried_out",
    ];
    caught(Judging::by(peeks_deny_hits), Family::Batch, &cases);
}

/// Admits a hit only if one more unit would have fitted.
fn keeps_the_last_unit(states: &mut States, batch: &Batch<'_>, now: Timestamp) -> Verdicts {
    changed(states, batch, now, |check, mut state, now| match check.op {
        Op::Hit(cost) => {
            let more = Op::Peek(Cost::new(cost.get().saturating_add(1)).unwrap());
            let fits = check.policy.rule().step(&mut state, now, more).is_allowed();
            if fits { check.op } else { more }
        }
        op => op,
    })
}

#[test]
fn a_store_that_never_gives_out_the_last_unit_is_caught() {
    let store = || Judging::by(keeps_the_last_unit);
    caught(store(), Family::Golden, &[]);
    caught(
        store(),
        Family::Differential,
        &["token_bucket", "fixed_window"],
    );
    caught(
        store(),
        Family::Concurrency,
        &["sliding_log_admits_exactly_its_limit"],
    );
}

/// Takes what costs more than ever fits for the most that does.
fn cuts_costs_to_the_capacity(states: &mut States, batch: &Batch<'_>, now: Timestamp) -> Verdicts {
    changed(states, batch, now, |check, _, _| {
        let most = check.policy.rule().capacity().max(1);
        match check.op {
            Op::Hit(cost) => Op::Hit(Cost::new(cost.get().min(most)).unwrap()),
            Op::Peek(cost) => Op::Peek(Cost::new(cost.get().min(most)).unwrap()),
            op => op,
        }
    })
}

#[test]
fn a_store_that_admits_what_can_never_fit_is_caught() {
    let store = || Judging::by(cuts_costs_to_the_capacity);
    caught(store(), Family::Golden, &["gcra_answers_over_time"]);
    caught(store(), Family::Differential, &["leaky_bucket"]);
    caught(
        store(),
        Family::Batch,
        &["a_hit_that_can_never_fit_charges_none"],
    );
}

/// Charges for looking.
fn peeks_charge(states: &mut States, batch: &Batch<'_>, now: Timestamp) -> Verdicts {
    changed(states, batch, now, |check, _, _| match check.op {
        Op::Peek(cost) => Op::Hit(cost),
        op => op,
    })
}

#[test]
fn a_store_whose_peeks_charge_is_caught() {
    let store = || Judging::by(peeks_charge);
    caught(store(), Family::Differential, &["gcra"]);
    caught(
        store(),
        Family::Batch,
        &["a_peek_in_a_batch_charges_nothing"],
    );
    caught(
        store(),
        Family::Concurrency,
        &["peeks_among_hits_spend_nothing"],
    );
    caught(
        store(),
        Family::Hygiene,
        &["peeks_at_sliding_window_leave_nothing"],
    );
}

/// Looks for one unit, whatever was asked.
fn peeks_look_for_one(states: &mut States, batch: &Batch<'_>, now: Timestamp) -> Verdicts {
    changed(states, batch, now, |check, _, _| match check.op {
        Op::Peek(_) => Op::Peek(Cost::ONE),
        op => op,
    })
}

#[test]
fn a_store_whose_peek_disagrees_with_its_hit_is_caught() {
    let cases = [
        "token_bucket",
        "sliding_window",
        "sliding_log",
        "fixed_window",
    ];
    caught(
        Judging::by(peeks_look_for_one),
        Family::Differential,
        &cases,
    );
}

/// Gives back whatever was not used, however long ago it was charged: the window it counted in may be over.
fn gives_back_too_much(states: &mut States, batch: &Batch<'_>, now: Timestamp) -> Verdicts {
    changed(states, batch, now, |check, _, now| match check.op {
        Op::Settle(settlement) => Op::Settle(Settlement {
            charged_at: now,
            mark: u64::MAX,
            ..settlement
        }),
        op => op,
    })
}

#[test]
fn a_store_that_gives_back_what_counts_no_more_is_caught() {
    let store = || Judging::by(gives_back_too_much);
    caught(
        store(),
        Family::Golden,
        &["a_window_that_is_over_takes_nothing_back"],
    );
    caught(
        store(),
        Family::Differential,
        &["gcra", "fixed_window", "sliding_window"],
    );
}

/// Knows no debt: what was used on top is not charged.
fn forgives_debts(states: &mut States, batch: &Batch<'_>, now: Timestamp) -> Verdicts {
    changed(states, batch, now, |check, _, _| match check.op {
        Op::Settle(settlement) => Op::Settle(Settlement {
            actual: settlement.actual.min(settlement.charged.get()),
            ..settlement
        }),
        op => op,
    })
}

#[test]
fn a_store_that_forgives_what_was_used_on_top_is_caught() {
    let store = || Judging::by(forgives_debts);
    caught(
        store(),
        Family::Golden,
        &["a_debt_in_a_bucket_is_paid_by_waiting"],
    );
    caught(
        store(),
        Family::Differential,
        &["sliding_log", "token_bucket"],
    );
    caught(store(), Family::Concurrency, &["gcra_gives_back_exactly"]);
}
