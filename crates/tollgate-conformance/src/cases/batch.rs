//! Several checks judged as one: all charged or none.

use std::time::Duration;

use tollgate_core::{Algorithm, Batch, Check, ErrorKind};

use crate::case::{Case, Family, stories, stories_of_each_algorithm};
use crate::counter::{Counter, policy};
use crate::outcome::{Outcome, ensure, ensure_eq};
use crate::testbed::TestBed;

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = stories![Family::Batch =>
        one_denial_charges_none,
        the_denier_is_told_apart_wherever_it_stands,
        every_denier_is_told_apart,
        a_hit_that_can_never_fit_charges_none,
        answers_stand_in_the_order_of_the_checks,
        the_order_of_the_checks_changes_no_answer,
        all_algorithms_are_charged_together,
        policies_of_one_subject_are_charged_together,
        a_full_batch_is_charged_together,
        a_denied_batch_tried_a_hundred_times_still_charges_none,
        a_peek_that_would_be_denied_does_not_stand_in_the_way,
        a_peek_in_a_batch_charges_nothing,
        a_settlement_is_carried_out_whatever_becomes_of_the_hits,
        a_key_twice_is_refused_and_nothing_is_charged,
        a_denied_batch_moves_back_a_time_that_lay_ahead,
    ];
    cases.extend(stories_of_each_algorithm![Family::Batch =>
        a_batch_of_one as "a_batch_of_one_{}_is_a_single_hit",
        denied_by as "a_denial_by_{}_charges_none",
    ]);
    cases
}

/// Three keys on which a batch of one unit each leaves 9, 9 and 9.
fn three(bed: &TestBed) -> [Counter; 3] {
    ["alice", "bob", "carol"].map(|name| bed.counter(name, Algorithm::TokenBucket, "10/day"))
}

async fn use_up(bed: &TestBed, counter: &Counter) -> Outcome {
    let capacity = counter.policy().rule().capacity();
    bed.now()
        .hit(counter, capacity)
        .await?
        .admitted()?
        .leaving(0)?;
    Ok(())
}

async fn one_denial_charges_none(bed: TestBed) -> Outcome {
    bed.needs_any_keys()?;
    let [alice, bob, carol] = three(&bed);
    use_up(&bed, &bob).await?;

    let answers = bed
        .now()
        .batch(&[alice.hit(1), bob.hit(1), carol.hit(1)])
        .await?;
    answers[1].denied()?;

    for other in [&alice, &carol] {
        bed.now().peek(other, 1).await?.as_never_seen()?;
    }
    Ok(())
}

async fn the_denier_is_told_apart_wherever_it_stands(bed: TestBed) -> Outcome {
    bed.needs_any_keys()?;
    let [alice, bob, carol] = three(&bed);
    let counters = [carol, alice, bob];
    for denier in 0..counters.len() {
        bed.reset(&counters).await?;
        use_up(&bed, &counters[denier]).await?;
        let checks = counters.each_ref().map(|counter| counter.hit(1));
        let answers = bed.now().batch(&checks).await?;
        for (index, answer) in answers.iter().enumerate() {
            ensure_eq!(
                answer.allowed,
                index != denier,
                "check {denier} alone is denied; check {index} is"
            );
        }
    }
    Ok(())
}

async fn every_denier_is_told_apart(bed: TestBed) -> Outcome {
    bed.needs_any_keys()?;
    let [alice, bob, carol] = three(&bed);
    use_up(&bed, &alice).await?;
    use_up(&bed, &carol).await?;
    let answers = bed
        .now()
        .batch(&[alice.hit(1), bob.hit(1), carol.hit(1)])
        .await?;
    answers[0].denied()?;
    answers[1].admitted()?.leaving(10)?;
    answers[2].denied()?;
    Ok(())
}

/// Known from limiters that compare a cost with the wrong limit of the two.
async fn a_hit_that_can_never_fit_charges_none(bed: TestBed) -> Outcome {
    let large = bed.scoped("large", "alice", policy(Algorithm::TokenBucket, "10/day"));
    let small = bed.scoped("small", "alice", policy(Algorithm::TokenBucket, "3/day"));
    let answers = bed.now().batch(&[large.hit(5), small.hit(5)]).await?;
    answers[0].admitted()?.leaving(10)?;
    answers[1].denied_for_ever()?.leaving(3)?;
    bed.now().peek(&large, 1).await?.as_never_seen()?;
    bed.now().peek(&small, 1).await?.as_never_seen()?;
    Ok(())
}

async fn answers_stand_in_the_order_of_the_checks(bed: TestBed) -> Outcome {
    bed.needs_any_keys()?;
    let used: Vec<u64> = (1..=8).collect();
    let counters: Vec<Counter> = used
        .iter()
        .map(|units| bed.counter(&format!("user {units}"), Algorithm::SlidingLog, "10/day"))
        .collect();
    for (counter, units) in counters.iter().zip(&used) {
        bed.now().hit(counter, *units).await?.admitted()?;
    }
    for turned in 0..counters.len() {
        let order = (0..counters.len()).map(|index| (index + turned) % counters.len());
        let checks: Vec<Check<'_>> = order.clone().map(|index| counters[index].peek(1)).collect();
        for (answer, index) in bed.now().batch(&checks).await?.iter().zip(order) {
            answer.leaving(10 - used[index])?;
        }
    }
    Ok(())
}

async fn the_order_of_the_checks_changes_no_answer(bed: TestBed) -> Outcome {
    bed.needs_any_keys()?;
    let (there, back) = (bed.untouched(), bed.untouched());
    let counters_of = |bed: &TestBed| {
        Algorithm::ALL.map(|algorithm| bed.counter(algorithm.name(), algorithm, "5/day"))
    };
    let (forwards, backwards) = (counters_of(&there), counters_of(&back));
    for round in 0..7 {
        let checks: Vec<Check<'_>> = forwards.iter().map(|counter| counter.hit(1)).collect();
        let one = there.now().batch(&checks).await?;
        let checks: Vec<Check<'_>> = backwards
            .iter()
            .rev()
            .map(|counter| counter.hit(1))
            .collect();
        let other = back.now().batch(&checks).await?;
        for (one, other) in one.iter().zip(other.iter().rev()) {
            ensure_eq!(
                (one.allowed, one.remaining),
                (other.allowed, other.remaining),
                "round {round} is answered alike in either order"
            );
        }
    }
    Ok(())
}

async fn all_algorithms_are_charged_together(bed: TestBed) -> Outcome {
    let counters = Algorithm::ALL
        .map(|algorithm| bed.scoped(algorithm.name(), "alice", policy(algorithm, "3/day")));
    let checks = counters.each_ref().map(|counter| counter.hit(1));
    for left in (0..3).rev() {
        for answer in bed.now().batch(&checks).await? {
            answer.admitted()?.leaving(left)?;
        }
    }
    for answer in bed.now().batch(&checks).await? {
        answer.denied()?.leaving(0)?;
    }
    Ok(())
}

async fn policies_of_one_subject_are_charged_together(bed: TestBed) -> Outcome {
    let per_minute = bed.scoped("minute", "alice", policy(Algorithm::FixedWindow, "2/hour"));
    let per_day = bed.scoped("day", "alice", policy(Algorithm::SlidingWindow, "5/day"));
    for left in [1, 0] {
        let answers = bed
            .now()
            .batch(&[per_minute.hit(1), per_day.hit(1)])
            .await?;
        answers[0].admitted()?.leaving(left)?;
        answers[1].admitted()?.leaving(left + 3)?;
    }
    let answers = bed
        .now()
        .batch(&[per_minute.hit(1), per_day.hit(1)])
        .await?;
    answers[0].denied()?;
    answers[1].admitted()?.leaving(3)?;
    bed.now().peek(&per_day, 1).await?.leaving(3)?;
    Ok(())
}

async fn a_full_batch_is_charged_together(bed: TestBed) -> Outcome {
    let counters: Vec<Counter> = (0..Batch::MAX_CHECKS)
        .map(|nth| {
            let algorithm = Algorithm::ALL[nth % Algorithm::ALL.len()];
            bed.scoped(&format!("scope {nth}"), "alice", policy(algorithm, "2/day"))
        })
        .collect();
    let checks: Vec<Check<'_>> = counters.iter().map(|counter| counter.hit(1)).collect();
    for left in [1, 0] {
        for answer in bed.now().batch(&checks).await? {
            answer.admitted()?.leaving(left)?;
        }
    }
    bed.reset(&counters[..Batch::MAX_CHECKS - 1]).await?;
    let answers = bed.now().batch(&checks).await?;
    answers[Batch::MAX_CHECKS - 1].denied()?;
    for counter in &counters[..Batch::MAX_CHECKS - 1] {
        bed.now().peek(counter, 1).await?.as_never_seen()?;
    }
    Ok(())
}

async fn a_denied_batch_tried_a_hundred_times_still_charges_none(bed: TestBed) -> Outcome {
    bed.needs_any_keys()?;
    let [alice, bob, _] = three(&bed);
    use_up(&bed, &bob).await?;
    for _ in 0..100 {
        bed.now().batch(&[alice.hit(1), bob.hit(1)]).await?[1].denied()?;
    }
    bed.now().peek(&alice, 1).await?.as_never_seen()?;
    Ok(())
}

async fn a_peek_that_would_be_denied_does_not_stand_in_the_way(bed: TestBed) -> Outcome {
    bed.needs_any_keys()?;
    let [alice, bob, _] = three(&bed);
    use_up(&bed, &bob).await?;
    let answers = bed.now().batch(&[bob.peek(1), alice.hit(4)]).await?;
    answers[0].denied()?;
    answers[1].admitted()?.leaving(6)?;
    bed.now().peek(&alice, 1).await?.leaving(6)?;
    Ok(())
}

async fn a_peek_in_a_batch_charges_nothing(bed: TestBed) -> Outcome {
    bed.needs_any_keys()?;
    let [alice, bob, _] = three(&bed);
    bed.now().batch(&[alice.hit(1), bob.peek(10)]).await?[1].admitted()?;
    bed.now().peek(&bob, 1).await?.as_never_seen()?;
    ensure_eq!(
        bed.reset([&bob]).await?,
        0,
        "a peek leaves nothing to forget"
    );
    Ok(())
}

async fn a_settlement_is_carried_out_whatever_becomes_of_the_hits(bed: TestBed) -> Outcome {
    bed.needs_any_keys()?;
    let [alice, bob, _] = three(&bed);
    let charged = bed.now().hit(&alice, 6).await?;
    charged.admitted()?.leaving(4)?;
    use_up(&bed, &bob).await?;
    let answers = bed
        .now()
        .batch(&[bob.hit(1), alice.check(charged.settled_at(2))])
        .await?;
    answers[0].denied()?;
    answers[1].admitted()?.leaving(8)?;
    bed.now().peek(&alice, 1).await?.leaving(8)?;
    Ok(())
}

async fn a_key_twice_is_refused_and_nothing_is_charged(bed: TestBed) -> Outcome {
    let alice = bed.counter("alice", Algorithm::Gcra, "10/day");
    let checks = [alice.hit(1), alice.hit(1)];
    let Err(error) = Batch::new(&checks) else {
        return Err(crate::outcome::Stop::failed(
            "a key stands in one batch twice",
        ));
    };
    ensure_eq!(
        error.kind(),
        ErrorKind::InvalidInput,
        "the caller's mistake is named as one"
    );
    ensure_eq!(bed.reset([&alice]).await?, 0, "nothing was charged");
    Ok(())
}

async fn a_denied_batch_moves_back_a_time_that_lay_ahead(bed: TestBed) -> Outcome {
    bed.needs_virtual_time()?;
    let hour = Duration::from_secs(3_600);
    let full = bed.scoped("full", "alice", policy(Algorithm::TokenBucket, "1/hour"));
    let half = bed.scoped("half", "alice", policy(Algorithm::TokenBucket, "2/hour"));
    bed.at(10 * hour).batch(&[full.hit(1), half.hit(1)]).await?;

    // The clock stepped back ten hours. What was charged counts on from there, and for no longer than ever.
    let answers = bed
        .at(Duration::ZERO)
        .batch(&[full.hit(1), half.hit(1)])
        .await?;
    answers[0].denied_for(hour)?;
    ensure!(
        answers[1].allowed,
        "half of it is left, but it was {}",
        answers[1]
    );
    for answer in bed.at(hour).batch(&[full.hit(1), half.hit(2)]).await? {
        answer.admitted()?;
    }
    Ok(())
}

async fn a_batch_of_one(bed: TestBed, algorithm: Algorithm) -> Outcome {
    let alone = bed.scoped("alone", "alice", policy(algorithm, "3/day"));
    let batched = bed.scoped("batched", "alice", policy(algorithm, "3/day"));
    for units in [1, 2, 1, 4] {
        let one = bed.now().hit(&alone, units).await?;
        let other = bed.now().batch(&[batched.hit(units)]).await?.remove(0);
        ensure_eq!(
            (one.allowed, one.remaining, one.retry_after.is_none()),
            (other.allowed, other.remaining, other.retry_after.is_none()),
            "a hit of {units} is answered alike, alone or in a batch"
        );
    }
    Ok(())
}

async fn denied_by(bed: TestBed, algorithm: Algorithm) -> Outcome {
    let others = Algorithm::ALL
        .map(|other| bed.scoped(&format!("beside {other}"), "alice", policy(other, "10/day")));
    let denier = bed.scoped("denier", "alice", policy(algorithm, "1/day"));
    use_up(&bed, &denier).await?;
    let mut checks: Vec<Check<'_>> = others.iter().map(|other| other.hit(1)).collect();
    checks.insert(3, denier.hit(1));
    bed.now().batch(&checks).await?[3].denied()?;
    for other in &others {
        bed.now().peek(other, 1).await?.as_never_seen()?;
    }
    ensure_eq!(
        bed.reset(&others).await?,
        0,
        "a denied batch leaves nothing to forget"
    );
    Ok(())
}
