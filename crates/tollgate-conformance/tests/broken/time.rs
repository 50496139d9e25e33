//! Faults in whose clock counts, and in arithmetic on instants.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tollgate_conformance::Family;
use tollgate_core::algorithm::FixedWindowState;
use tollgate_core::{Batch, Clock, ManualClock, State, SystemClock, Timestamp, Verdicts};

use crate::caught;
use crate::judge::{Judging, States, sound};

fn later(at: Timestamp, micros: u64) -> Timestamp {
    at + Duration::from_micros(micros)
}

/// Judges everything at the first instant that it heard of for a key.
fn never_refills(states: &mut States, batch: &Batch<'_>, now: Timestamp) -> Verdicts {
    let held = states.of(batch);
    let then = held.iter().flatten().filter_map(State::time).min();
    let verdicts = sound(states, batch, then.unwrap_or(now));
    at(now, &verdicts)
}

/// The same verdicts, said to be judged at `now`.
fn at(now: Timestamp, verdicts: &Verdicts) -> Verdicts {
    Verdicts::many(now, verdicts.as_slice().into())
}

#[test]
fn a_store_that_never_refills_is_caught() {
    let store = || Judging::by(never_refills);
    caught(store(), Family::Golden, &["gcra_answers_over_time"]);
    caught(
        store(),
        Family::Differential,
        &["token_bucket", "fixed_window"],
    );
    caught(
        store(),
        Family::Clock,
        &["sliding_log_is_exact_on_the_stores_own_clock"],
    );
}

/// Judges a microsecond ahead of what it says.
fn admits_a_microsecond_early(states: &mut States, batch: &Batch<'_>, now: Timestamp) -> Verdicts {
    let verdicts = sound(states, batch, later(now, 1));
    at(now, &verdicts)
}

#[test]
fn a_store_that_admits_a_microsecond_early_is_caught() {
    let store = || Judging::by(admits_a_microsecond_early);
    caught(
        store(),
        Family::Differential,
        &["sliding_log", "fixed_window", "gcra"],
    );
    caught(store(), Family::Clock, &["when_the_clock_steps_back"]);
}

/// Keeps levels as floats of 24 bits.
fn drifts(states: &mut States, batch: &Batch<'_>, now: Timestamp) -> Verdicts {
    let verdicts = sound(states, batch, now);
    for check in batch.checks() {
        if let Some(State::Bucket(bucket)) = states.0.get_mut(&check.key.encode()) {
            let lost = (64 - bucket.level.leading_zeros()).saturating_sub(24);
            bucket.level = bucket.level >> lost << lost;
        }
    }
    verdicts
}

#[test]
fn a_store_that_keeps_levels_as_floats_is_caught() {
    let store = || Judging::by(drifts);
    caught(
        store(),
        Family::Differential,
        &["token_bucket", "leaky_bucket", "gcra", "extremes"],
    );
}

/// Begins a window anew with every hit.
fn renews_windows(states: &mut States, batch: &Batch<'_>, now: Timestamp) -> Verdicts {
    let verdicts = sound(states, batch, now);
    for check in batch.checks() {
        if let Some(State::FixedWindow(window)) = states.0.get_mut(&check.key.encode())
            && now > window.start
        {
            *window = FixedWindowState {
                start: now,
                ..*window
            };
        }
    }
    verdicts
}

#[test]
fn a_store_whose_window_begins_anew_with_every_hit_is_caught() {
    let store = || Judging::by(renews_windows);
    caught(store(), Family::Golden, &[]);
    caught(store(), Family::Differential, &["fixed_window"]);
    caught(
        store(),
        Family::Clock,
        &["fixed_window_is_exact_on_the_stores_own_clock"],
    );
}

/// Takes what was stored later than now for nothing.
fn forgets_when_the_clock_steps_back(
    states: &mut States,
    batch: &Batch<'_>,
    now: Timestamp,
) -> Verdicts {
    for check in batch.checks() {
        let key = check.key.encode();
        if states
            .0
            .get(&key)
            .and_then(State::time)
            .is_some_and(|time| time > now)
        {
            states.0.remove(&key);
        }
    }
    sound(states, batch, now)
}

#[test]
fn a_store_that_forgets_when_the_clock_steps_back_is_caught() {
    let store = || Judging::by(forgets_when_the_clock_steps_back);
    caught(
        store(),
        Family::Differential,
        &["token_bucket", "sliding_window"],
    );
    caught(store(), Family::Clock, &["gcra_admits_nothing_more"]);
}

/// Never believes that it is earlier than it once was.
fn waits_for_the_old_time(states: &mut States, batch: &Batch<'_>, now: Timestamp) -> Verdicts {
    let held = states.of(batch);
    let latest = held.iter().flatten().filter_map(State::time).max();
    let verdicts = sound(states, batch, latest.map_or(now, |latest| latest.max(now)));
    at(now, &verdicts)
}

#[test]
fn a_store_that_locks_out_until_the_old_time_is_reached_again_is_caught() {
    let store = || Judging::by(waits_for_the_old_time);
    caught(
        store(),
        Family::Differential,
        &["token_bucket", "sliding_log"],
    );
    caught(
        store(),
        Family::Clock,
        &["gcra_admits_nothing_more_and_locks_nobody_out"],
    );
}

/// A client that believes to be a second ahead.
#[derive(Debug)]
struct ClientClock;

impl Clock for ClientClock {
    fn now(&self) -> Timestamp {
        later(SystemClock.now(), 1_000_000)
    }
}

#[test]
fn a_store_that_judges_by_its_clients_clock_is_caught() {
    let cases = ["the_store_judges_by_its_backends_clock"];
    caught(Judging::on(|| ClientClock), Family::Clock, &cases);
}

#[test]
fn a_store_whose_clock_stands_still_is_caught() {
    let cases = ["the_stores_clock_moves_on"];
    caught(Judging::on(ManualClock::default), Family::Clock, &cases);
}

/// Remembers the latest instant that anybody has named.
fn is_carried_away(states: &mut States, batch: &Batch<'_>, now: Timestamp) -> Verdicts {
    static LATEST: AtomicU64 = AtomicU64::new(0);
    let latest = LATEST.fetch_max(now.as_micros(), Ordering::SeqCst);
    if batch.instant().is_some() {
        return sound(states, batch, now);
    }
    sound(
        states,
        batch,
        now.max(Timestamp::saturating_from_micros(latest)),
    )
}

#[test]
fn a_store_whose_clock_follows_the_instants_it_is_named_is_caught() {
    let cases = ["an_instant_named_by_one_call_moves_no_other_calls_clock"];
    caught(Judging::by(is_carried_away), Family::Clock, &cases);
}

/// Reads the clock for every check.
fn reads_the_clock_for_every_check(
    states: &mut States,
    batch: &Batch<'_>,
    now: Timestamp,
) -> Verdicts {
    let mut judged = states.of(batch);
    let verdicts =
        batch
            .checks()
            .iter()
            .zip(&mut judged)
            .zip(0..)
            .map(|((check, state), micros)| {
                let now = if batch.instant().is_some() {
                    now
                } else {
                    later(now, micros)
                };
                check.policy.rule().step(state, now, check.op)
            });
    let verdicts = verdicts.collect();
    states.keep(batch, judged);
    Verdicts::many(now, verdicts)
}

#[test]
fn a_store_that_judges_each_check_at_another_instant_is_caught() {
    let cases = ["a_batch_is_judged_at_one_instant"];
    caught(
        Judging::by(reads_the_clock_for_every_check),
        Family::Clock,
        &cases,
    );
}
