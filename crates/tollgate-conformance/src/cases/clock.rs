//! Whose clock counts, and what it does to limits when it moves.
//!
//! No case takes the time a call needs for a verdict: answers say at which instant they were judged, and are held to
//! what is right at that instant.

use std::time::Duration;

use tokio::time::{Instant, sleep};
use tollgate_core::{Algorithm, Batch, Check, Source, State, Store, Timestamp};

use crate::case::{Case, Family, stories, stories_of_each_algorithm};
use crate::compare::same;
use crate::counter::{Answer, Counter, policy};
use crate::outcome::{Outcome, Stop, ensure, ensure_eq};
use crate::testbed::TestBed;

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = stories![Family::Clock =>
        the_stores_clock_moves_on,
        the_named_instant_is_what_the_store_judges_at,
        an_instant_named_by_one_call_moves_no_other_calls_clock,
        the_store_judges_by_its_backends_clock,
        two_clients_judge_by_one_clock,
        a_batch_is_judged_at_one_instant,
    ];
    cases.extend(stories_of_each_algorithm![Family::Clock =>
        retry_after_is_exact as "{}_admits_when_retry_after_has_passed_and_not_before",
        exact_on_its_own_clock as "{}_is_exact_on_the_stores_own_clock",
        stepping_back as "{}_admits_nothing_more_and_locks_nobody_out_when_the_clock_steps_back",
    ]);
    cases
}

async fn the_stores_clock_moves_on(bed: TestBed) -> Outcome {
    let alice = bed.counter("alice", Algorithm::TokenBucket, "1/day");
    let before = bed.now().peek(&alice, 1).await?.at;
    sleep(Duration::from_millis(20)).await;
    let after = bed.now().peek(&alice, 1).await?.at;
    ensure!(
        after > before,
        "20 ms later the store's clock says {after}, and before it said {before}"
    );
    Ok(())
}

async fn the_named_instant_is_what_the_store_judges_at(bed: TestBed) -> Outcome {
    bed.needs_virtual_time()?;
    for micros in [
        0,
        1,
        999_999,
        1_000_000_000_000_001,
        Timestamp::MAX.as_micros(),
    ] {
        let at = Timestamp::saturating_from_micros(micros);
        let bed = bed.untouched();
        let alice = bed.counter("alice", Algorithm::FixedWindow, "1/day");
        bed.at_instant(at).hit(&alice, 1).await?.admitted()?;
        // Everything that was charged at this instant is there at this instant, and for the whole window.
        let day = Duration::from_secs(86_400);
        let again = bed.at_instant(at).hit(&alice, 1).await?;
        ensure_eq!(again.at, at, "the answer says when it was judged");
        again.denied_for(day)?;
    }
    Ok(())
}

/// Known from stores that remember the latest time they have heard of.
async fn an_instant_named_by_one_call_moves_no_other_calls_clock(bed: TestBed) -> Outcome {
    bed.needs_virtual_time()?;
    let alice = bed.counter("alice", Algorithm::TokenBucket, "10/day");
    let before = bed.now().peek(&alice, 1).await?.at;
    for far in [Timestamp::EPOCH, Timestamp::MAX] {
        let bob = bed.counter("bob", Algorithm::TokenBucket, "10/day");
        bed.at_instant(far).hit(&bob, 1).await?;
        let now = bed.now().hit(&alice, 1).await?.at;
        let an_hour_on = before + Duration::from_secs(3_600);
        ensure!(
            (before..an_hour_on).contains(&now),
            "after another call named {far}, the store's own clock went from {before} to {now}"
        );
    }
    Ok(())
}

/// How far a clock may be set back or forth between two readings of it, by whoever keeps it right.
const CLOCK_SET: Duration = Duration::from_millis(1);

/// A client's clock is no clock for a shared limit: two clients never have the same.
async fn the_store_judges_by_its_backends_clock(bed: TestBed) -> Outcome {
    let alice = bed.counter("alice", Algorithm::Gcra, "1000/day");
    for _ in 0..20 {
        let before = bed.backend_time().await?;
        let judged = bed.now().hit(&alice, 1).await?.at;
        let after = bed.backend_time().await?;
        ensure!(
            before <= judged + CLOCK_SET && judged <= after + CLOCK_SET,
            "judged at {judged}, though the backend's clock went from {before} to {after}"
        );
    }
    Ok(())
}

async fn two_clients_judge_by_one_clock(bed: TestBed) -> Outcome {
    let peer = bed.peer().await?;
    let alice = bed.counter("alice", Algorithm::Gcra, "1000/day");
    let mut last = Timestamp::EPOCH;
    for _ in 0..20 {
        for client in [&bed, &peer] {
            let judged = client.now().hit(&alice, 1).await?.at;
            ensure!(
                last <= judged + CLOCK_SET,
                "one client's hit was judged at {last}, and the next one at {judged}"
            );
            last = judged;
        }
    }
    Ok(())
}

/// Everything the store has said, judged once more by core at the instants that it named.
struct Follower<'a> {
    /// The store, asked by a future and without one in turn.
    beds: [TestBed; 2],
    counters: &'a [Counter],
    states: Vec<Option<State>>,
}

impl<'a> Follower<'a> {
    fn new(bed: &TestBed, counters: &'a [Counter]) -> Self {
        Self {
            beds: [bed.clone(), bed.at_once()],
            counters,
            states: vec![None; counters.len()],
        }
    }

    /// Asks one check of each counter by the store's own clock, and core for the instant that it answers with.
    async fn ask<'b>(&'b mut self, check: impl Fn(&'b Counter) -> Check<'b>) -> Outcome {
        let checks: Vec<Check<'_>> = self.counters.iter().map(check).collect();
        let batch = Batch::new(&checks)?;
        self.beds.swap(0, 1);
        let got = self.beds[0].store().apply(batch).await?;
        if got.source() != Source::Store {
            return Err(Stop::NotApplicable(
                "another part of the store answers here, which the other cases hold to its numbers"
                    .to_owned(),
            ));
        }
        let expected = batch.step(&mut self.states, got.at());
        same(&checks, &got, &expected)
    }
}

/// 5 per 200 ms, asked every few milliseconds for a second: boundaries, refills and expiries at the pace of real time.
async fn exact_on_its_own_clock(bed: TestBed, algorithm: Algorithm) -> Outcome {
    let counters = [
        bed.scoped("one", "alice", policy(algorithm, "5/200ms")),
        bed.scoped("other", "alice", policy(algorithm, "7/300ms")),
    ];
    let mut follower = Follower::new(&bed, &counters);
    // Rests that end before a key is as good as never seen, and after it.
    for rest in [130, 190, 350, 90, 260] {
        for round in 0..12 {
            match round % 4 {
                0 => follower.ask(|counter| counter.peek(2)).await?,
                _ => follower.ask(|counter| counter.hit(1 + round % 2)).await?,
            }
            sleep(Duration::from_millis(5)).await;
        }
        sleep(Duration::from_millis(rest)).await;
    }
    Ok(())
}

/// A million units flow back each second, so that a microsecond between two checks would show.
async fn a_batch_is_judged_at_one_instant(bed: TestBed) -> Outcome {
    let counters: Vec<Counter> = (0..Batch::MAX_CHECKS)
        .map(|nth| {
            let algorithm = Algorithm::ALL[nth % Algorithm::ALL.len()];
            bed.scoped(
                &format!("scope {nth}"),
                "alice",
                policy(algorithm, "1000000/s"),
            )
        })
        .collect();
    let mut follower = Follower::new(&bed, &counters);
    for _ in 0..30 {
        follower.ask(|counter| counter.hit(1_000)).await?;
    }
    Ok(())
}

/// How long a store's clock may take to get to where time is.
const PATIENCE: Duration = Duration::from_secs(5);

/// How far a counter of the server's own may be off, whose clock ticks in milliseconds.
const NATIVE_TICK: Duration = Duration::from_millis(2);

/// Hits until it is denied, which takes three hits unless the machine stands still for a while.
async fn first_denial(bed: &TestBed, counter: &Counter) -> Outcome<Answer> {
    for _ in 0..1_000 {
        let answer = bed.now().hit(counter, 1).await?;
        if !answer.allowed {
            return Ok(answer);
        }
    }
    Err(Stop::failed(
        "a thousand hits in a row were admitted where two are",
    ))
}

/// Known from limiters that round: told to wait 10 s and admitted after 5, or told 1 s where 800 ms would do.
async fn retry_after_is_exact(bed: TestBed, algorithm: Algorithm) -> Outcome {
    let alice = bed.counter("alice", algorithm, "2/200ms");
    let denied = first_denial(&bed, &alice).await?;
    let Some(wait) = denied.retry_after else {
        return Err(Stop::failed(
            "one unit of two fits in time, but it was denied for ever",
        ));
    };
    let due = denied.at + wait;
    let asked = Instant::now();
    loop {
        ensure!(
            asked.elapsed() < wait + PATIENCE,
            "{PATIENCE:?} after it should be, the store's clock has not reached {due}"
        );
        let answer = bed.now().hit(&alice, 1).await?;
        if answer.source == Source::NativeCounter
            && answer.at + NATIVE_TICK > due
            && answer.at < due + NATIVE_TICK
        {
            if answer.allowed {
                // Asked on, it would use up the new window.
                return Ok(());
            }
            continue;
        }
        ensure_eq!(
            answer.allowed,
            answer.at >= due,
            "told at {} to wait until {due}, and judged at {}",
            denied.at,
            answer.at
        );
        if answer.allowed {
            return Ok(());
        }
        sleep(Duration::from_millis(3)).await;
    }
}

/// Known from limiters that trust whichever client comes last: a clock one second behind let the next one refill twice.
async fn stepping_back(bed: TestBed, algorithm: Algorithm) -> Outcome {
    bed.needs_virtual_time()?;
    let (limit, hour) = (4, Duration::from_secs(3_600));
    let alice = bed.counter("alice", algorithm, "4/hour");
    let late = 1_000 * hour;
    bed.at(late).hit(&alice, limit).await?.admitted()?;
    for earlier in [
        late - Duration::from_micros(1),
        late - 2 * hour,
        Duration::ZERO,
    ] {
        let denied = bed.at(earlier).hit(&alice, 1).await?;
        denied.denied()?.leaving(0)?;
        let wait = denied.retry_after.unwrap_or(Duration::MAX);
        ensure!(
            wait <= 2 * hour,
            "no wait is longer than two periods, but it was {denied}"
        );
    }
    // From where the clock is now, as long as it ever takes.
    let denied = bed.at(Duration::ZERO).hit(&alice, limit).await?;
    let wait = denied.denied()?.retry_after.unwrap_or(Duration::MAX);
    ensure!(
        wait <= 2 * hour,
        "no wait is longer than two periods, but it was {denied}"
    );
    bed.at(wait - Duration::from_micros(1))
        .hit(&alice, limit)
        .await?
        .denied()?;
    bed.at(wait).hit(&alice, limit).await?.admitted()?;
    Ok(())
}
