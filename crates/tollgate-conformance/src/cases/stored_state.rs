//! What other versions, other programs and accidents have left under a key.

use std::time::Duration;

use tollgate_core::algorithm::{
    BucketState, FixedWindowState, SlidingLogState, SlidingWindowState,
};
use tollgate_core::{Algorithm, Batch, ErrorKind, Family, State, Store, Timestamp};

use crate::case::{Case, stories, stories_of_each_algorithm};
use crate::compare::same;
use crate::counter::Counter;
use crate::offer::Plant;
use crate::outcome::{Outcome, chain, ensure_eq};
use crate::testbed::{START, TestBed};

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = stories![crate::case::Family::StoredState =>
        a_long_log_is_counted_and_forgotten_whole,
    ];
    cases.extend(
        stories_of_each_algorithm![crate::case::Family::StoredState =>
            version_one as "{}_reads_the_first_published_format",
            later_version as "{}_never_misreads_a_later_format",
            torn as "{}_never_misreads_a_torn_value",
            unreadable_is_forgotten as "a_reset_clears_what_{}_cannot_read",
        ],
    );
    cases
}

/// Four of six units used, some of them a while ago.
fn used(algorithm: Algorithm) -> State {
    let at = |second: u64| Timestamp::saturating_from_micros(START + second * 1_000_000);
    match algorithm.family() {
        // 6 per minute: a unit weighs 10^7 microseconds' worth of draining, since 6 and 60 000 000 share the factor 6.
        Family::Bucket => State::Bucket(BucketState {
            updated: at(20),
            level: 40_000_000,
            unit: 10_000_000,
        }),
        Family::FixedWindow => State::FixedWindow(FixedWindowState {
            start: at(0),
            count: 4,
        }),
        Family::SlidingWindow => State::SlidingWindow(SlidingWindowState {
            start: at(0),
            count: 3,
            previous: 2,
        }),
        Family::SlidingLog => State::SlidingLog(Box::new(SlidingLogState::from_hits([
            (at(0), 1),
            (at(7), 2),
            (at(20), 1),
        ]))),
    }
}

fn alice(bed: &TestBed, algorithm: Algorithm) -> Counter {
    bed.counter("alice", algorithm, "6/minute")
}

async fn version_one(bed: TestBed, algorithm: Algorithm) -> Outcome {
    bed.needs_virtual_time()?;
    let alice = alice(&bed, algorithm);
    let state = used(algorithm);
    bed.plant(&alice, Plant::VersionOne(&state)).await?;

    let mut kept = [Some(state)];
    for second in [20, 21, 33, 61, 70, 200] {
        let at = Timestamp::saturating_from_micros(START) + Duration::from_secs(second);
        for check in [alice.peek(1), alice.hit(1), alice.hit(2)] {
            let batch = Batch::of_one(&check).at(Some(at));
            let expected = batch.step(&mut kept, at);
            same(&[check], &bed.store().apply(batch).await?, &expected)?;
        }
    }
    Ok(())
}

async fn later_version(bed: TestBed, algorithm: Algorithm) -> Outcome {
    bed.needs_virtual_time()?;
    let alice = alice(&bed, algorithm);
    bed.plant(&alice, Plant::LaterVersion(&used(algorithm)))
        .await?;
    refused_or_never_seen(&bed, &alice).await
}

async fn torn(bed: TestBed, algorithm: Algorithm) -> Outcome {
    bed.needs_virtual_time()?;
    let alice = alice(&bed, algorithm);
    bed.plant(&alice, Plant::Torn(&used(algorithm))).await?;
    refused_or_never_seen(&bed, &alice).await
}

/// A value that cannot be read is either reported as what it is, or counts as nothing at all. It is never half read.
async fn refused_or_never_seen(bed: &TestBed, counter: &Counter) -> Outcome {
    let check = counter.peek(1);
    let at = Timestamp::saturating_from_micros(START) + Duration::from_secs(21);
    match bed.store().apply(Batch::of_one(&check).at(Some(at))).await {
        Err(error) => ensure_eq!(
            error.kind(),
            ErrorKind::Corrupt,
            "the error says what is wrong, but it was: {}",
            chain(&error)
        ),
        Ok(_) => {
            bed.at_instant(at).peek(counter, 1).await?.as_never_seen()?;
        }
    }
    Ok(())
}

async fn unreadable_is_forgotten(bed: TestBed, algorithm: Algorithm) -> Outcome {
    bed.needs_virtual_time()?;
    let alice = alice(&bed, algorithm);
    bed.plant(&alice, Plant::Torn(&used(algorithm))).await?;
    bed.reset([&alice]).await?;
    bed.at(Duration::from_secs(21))
        .hit(&alice, 6)
        .await?
        .admitted()?
        .leaving(0)?;
    Ok(())
}

/// Known from scripts that hand every entry of a log to one call: some thousands are too many for it.
async fn a_long_log_is_counted_and_forgotten_whole(bed: TestBed) -> Outcome {
    const HITS: u64 = 20_000;
    bed.needs_virtual_time()?;
    let alice = bed.counter("alice", Algorithm::SlidingLog, "20000/day");
    let at = |micros: u64| Timestamp::saturating_from_micros(START + micros);
    let hits = (0..HITS - 1).map(|micros| (at(micros), 1));
    let state = State::SlidingLog(Box::new(SlidingLogState::from_hits(hits)));
    bed.plant(&alice, Plant::VersionOne(&state)).await?;

    let (day, half) = (Duration::from_secs(86_400), HITS / 2);
    bed.at_instant(at(HITS))
        .hit(&alice, 1)
        .await?
        .admitted()?
        .leaving(0)?;
    // Half of them are a day old, and then all of them.
    let later = day + Duration::from_micros(half - 1);
    bed.at(later)
        .hit(&alice, half)
        .await?
        .admitted()?
        .leaving(0)?;
    bed.at(later)
        .hit(&alice, 1)
        .await?
        .denied_for(Duration::from_micros(1))?;
    bed.at(3 * day)
        .hit(&alice, HITS)
        .await?
        .admitted()?
        .leaving(0)?;
    ensure_eq!(bed.reset([&alice]).await?, 1, "one key was there");
    Ok(())
}
