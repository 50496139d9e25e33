//! Hostile keys, and what is left behind.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use tollgate_core::{Algorithm, Key, Policy, Source};

use crate::case::{Case, Family, stories, stories_of_each_algorithm};
use crate::counter::{Counter, policy};
use crate::offer::Held;
use crate::outcome::{Outcome, Stop, ensure, ensure_eq};
use crate::testbed::TestBed;

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = stories![Family::Hygiene =>
        hostile_subjects_are_counted_apart,
        parts_of_a_key_never_run_into_each_other,
        subjects_of_any_length_are_counted_apart,
        a_hashed_subject_never_meets_one_spelled_like_its_hash,
        algorithms_under_one_name_never_meet,
        a_reset_forgets_exactly_the_keys_it_names,
        a_reset_takes_no_pattern,
        a_reset_says_how_many_keys_there_were,
    ];
    cases.extend(stories_of_each_algorithm![Family::Hygiene =>
        nothing_after_peeks as "peeks_at_{}_leave_nothing_to_forget",
        nothing_after_denials as "denied_hits_on_{}_leave_nothing_to_forget",
        peeks_write_nothing as "peeks_at_{}_write_nothing",
        everything_expires as "{}_keeps_a_key_until_its_reset_and_not_for_ever",
        reset_writes_nothing as "a_reset_of_{}_leaves_nothing_behind",
        repairs_expiry as "{}_repairs_a_lost_expiry_with_the_next_hit",
    ]);
    cases
}

/// Bytes that mean something to some backend, or to somebody who prints them.
fn hostile() -> Vec<Vec<u8>> {
    let mut subjects: Vec<Vec<u8>> = [
        "*",
        "user:*",
        "?",
        "[a-z]",
        "%",
        "_",
        "{",
        "}",
        "{}",
        "{user}",
        "{a}{b}",
        "}{",
        ":",
        "::",
        "a:b",
        "/",
        "a/b",
        "..",
        "\\",
        "\\0",
        "'",
        "\"",
        "'; DROP TABLE tollgate; --",
        "' OR '1'='1",
        "$1",
        "${x}",
        "$$",
        "`id`",
        "%s%n",
        " ",
        "  ",
        "\t",
        "\n",
        "\r\n",
        "a\r\nDEL b",
        "a\0",
        "\0",
        "\0\0",
        "a\0b",
        "undefined",
        "null",
        "nil",
        "0",
        "-1",
        "1e999",
        "user",
        "User",
        "USER",
        "user ",
        " user",
        "é",
        "e\u{301}",
        "ﬀ",
        "ff",
        "用户",
        "👩‍👩‍👧",
        "\u{202e}resu",
        "\u{feff}user",
    ]
    .iter()
    .map(|text| text.as_bytes().to_vec())
    .collect();
    subjects.extend([
        vec![0xff],
        vec![0xfe, 0xff],
        vec![0xc3],
        vec![0x80; 3],
        vec![0xed, 0xa0, 0x80],
        (0..=255).collect(),
    ]);
    subjects
}

/// Charges each counter another amount and checks that each has kept its own.
async fn counted_apart(bed: &TestBed, counters: &[Counter]) -> Outcome {
    for (counter, units) in counters.iter().zip(1..) {
        bed.now()
            .hit(counter, units)
            .await?
            .admitted()?
            .leaving(1_000_000 - units)?;
    }
    for (counter, units) in counters.iter().zip(1..) {
        let answer = bed.now().peek(counter, 1).await?;
        answer
            .leaving(1_000_000 - units)
            .map_err(|stop| stop.context(format!("{:?} meets another key", counter.key())))?;
    }
    let found = bed.reset(counters).await?;
    ensure_eq!(
        Ok(found),
        u64::try_from(counters.len()),
        "every key was a key of its own"
    );
    Ok(())
}

/// A million units, an aligned eternity: nothing flows back while a case runs.
fn large(bed: &TestBed, scope: &str, subject: &[u8]) -> Counter {
    bed.scoped(
        scope,
        subject,
        policy(Algorithm::FixedWindow, "1000000/400 days"),
    )
}

async fn hostile_subjects_are_counted_apart(bed: TestBed) -> Outcome {
    let counters: Vec<Counter> = hostile()
        .iter()
        .map(|subject| large(&bed, "", subject))
        .collect();
    counted_apart(&bed, &counters).await
}

/// Known from stores that join the parts with a separator: ("a/b", "c") and ("a", "b/c") were one key.
async fn parts_of_a_key_never_run_into_each_other(bed: TestBed) -> Outcome {
    let mut counters = BTreeMap::new();
    for separator in ["/", ":", "|", ".", "-", " ", "", "}{", "1:", "\\", "::"] {
        // Any two of the four parts may stand side by side in a store's spelling.
        for (one, other) in [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)] {
            let cut_late = [format!("a{separator}b"), "c".to_owned()];
            let cut_early = ["a".to_owned(), format!("b{separator}c")];
            for [left, right] in [cut_late, cut_early] {
                let mut parts = ["p", "s", "n", "x"].map(str::to_owned);
                parts[one] = left;
                parts[other] = right;
                let counter = of_parts(&bed, &parts)?;
                counters.insert(counter.key().encode(), counter);
            }
        }
    }
    let counters: Vec<Counter> = counters.into_values().collect();
    counted_apart(&bed, &counters).await
}

/// The counter of a prefix, a scope, a policy's name and a subject.
fn of_parts(bed: &TestBed, [prefix, scope, name, subject]: &[String; 4]) -> Outcome<Counter> {
    let quota = policy(Algorithm::FixedWindow, "1000000/400 days").quota();
    let policy = Policy::new(name, Algorithm::FixedWindow, quota)?;
    let prefix = format!("{}{prefix}", bed.prefix());
    Ok(Counter::new(&prefix, scope, policy, subject.as_bytes()))
}

/// Around the longest subject that stands in a key as it is, and far beyond; each differs from the next in one byte.
async fn subjects_of_any_length_are_counted_apart(bed: TestBed) -> Outcome {
    let mut counters = Vec::new();
    for length in [
        1,
        255,
        Key::MAX_SUBJECT,
        Key::MAX_SUBJECT + 1,
        1_000,
        65_536,
        1 << 20,
    ] {
        let mut subject = vec![b'a'; length];
        counters.push(large(&bed, "", &subject));
        subject[length - 1] = b'b';
        counters.push(large(&bed, "", &subject));
        subject[0] = b'c';
        if length > 1 {
            counters.push(large(&bed, "", &subject));
        }
    }
    counted_apart(&bed, &counters).await
}

async fn a_hashed_subject_never_meets_one_spelled_like_its_hash(bed: TestBed) -> Outcome {
    let long = large(&bed, "", &[b'a'; 300]);
    let hash = long.key().subject().to_vec();
    counted_apart(&bed, &[large(&bed, "", &hash), long]).await
}

/// Known from stores where two algorithms under one id read each other's state, or failed with a type error.
async fn algorithms_under_one_name_never_meet(bed: TestBed) -> Outcome {
    let counters = [
        Algorithm::FixedWindow,
        Algorithm::SlidingWindow,
        Algorithm::SlidingLog,
        Algorithm::TokenBucket,
    ]
    .map(|algorithm| bed.counter("alice", algorithm, "1000000/400 days"));
    counted_apart(&bed, &counters).await
}

async fn a_reset_forgets_exactly_the_keys_it_names(bed: TestBed) -> Outcome {
    let counters: Vec<Counter> = ["alice", "alice2", "alic", "bob", "Alice"]
        .map(|name| large(&bed, "", name.as_bytes()))
        .into();
    for counter in &counters {
        bed.now().hit(counter, 7).await?.admitted()?;
    }
    ensure_eq!(
        bed.reset([&counters[0], &counters[3]]).await?,
        2,
        "two keys were named"
    );
    for (index, counter) in counters.iter().enumerate() {
        let answer = bed.now().peek(counter, 1).await?;
        if index == 0 || index == 3 {
            answer.as_never_seen()?;
        } else {
            answer.leaving(1_000_000 - 7)?;
        }
    }
    Ok(())
}

/// Known from stores whose reset lists keys by pattern: the id `*` cleared everybody.
async fn a_reset_takes_no_pattern(bed: TestBed) -> Outcome {
    let alice = large(&bed, "", b"user:alice");
    bed.now().hit(&alice, 7).await?.admitted()?;
    for pattern in [
        "*",
        "user:*",
        "user:?????",
        "user:[a-z]lice",
        "%",
        "user:%",
        "user:_____",
        "user:alice*",
    ] {
        let named = large(&bed, "", pattern.as_bytes());
        ensure_eq!(
            bed.reset([&named]).await?,
            0,
            "nobody has the subject {pattern:?}"
        );
        bed.now().peek(&alice, 1).await?.leaving(1_000_000 - 7)?;
    }
    Ok(())
}

async fn a_reset_says_how_many_keys_there_were(bed: TestBed) -> Outcome {
    let counters = ["a", "b", "c"].map(|name| large(&bed, "", name.as_bytes()));
    ensure_eq!(bed.reset(&counters).await?, 0, "nothing was there yet");
    bed.now().hit(&counters[1], 1).await?.admitted()?;
    ensure_eq!(bed.reset(&counters).await?, 1, "one key was there");
    ensure_eq!(bed.reset(&counters).await?, 0, "it is gone");
    ensure_eq!(bed.reset([]).await?, 0, "nothing was named");
    Ok(())
}

async fn nothing_after_peeks(bed: TestBed, algorithm: Algorithm) -> Outcome {
    let alice = bed.counter("alice", algorithm, "10/day");
    for units in [1, 10, 11] {
        bed.now().peek(&alice, units).await?.as_never_seen()?;
    }
    ensure_eq!(
        bed.reset([&alice]).await?,
        0,
        "peeks leave nothing to forget"
    );
    Ok(())
}

async fn nothing_after_denials(bed: TestBed, algorithm: Algorithm) -> Outcome {
    let alice = bed.counter("alice", algorithm, "10/day");
    bed.now().hit(&alice, 11).await?.denied_for_ever()?;
    let blocked = bed.scoped("blocked", "alice", policy(algorithm, "0/day"));
    bed.now()
        .hit(&blocked, 1)
        .await?
        .denied_for_ever()?
        .leaving(0)?;
    ensure_eq!(
        bed.reset([&alice, &blocked]).await?,
        0,
        "denied hits leave nothing to forget"
    );
    Ok(())
}

async fn peeks_write_nothing(bed: TestBed, algorithm: Algorithm) -> Outcome {
    let alice = bed.counter("alice", algorithm, "10/day");
    bed.now().peek(&alice, 1).await?.admitted()?;
    ensure_eq!(
        bed.held(&alice).await?,
        Held::Nothing,
        "a peek at a key that nobody has used"
    );

    // A peek at a key that is in use does not keep it alive either.
    bed.now().hit(&alice, 1).await?.admitted()?;
    let Held::For(before) = bed.held(&alice).await? else {
        return Err(Stop::failed("a key in use is held, and expires"));
    };
    tokio::time::sleep(Duration::from_millis(30)).await;
    bed.now().peek(&alice, 1).await?.admitted()?;
    let after = bed.held(&alice).await?;
    ensure!(
        matches!(after, Held::For(left) if left < before),
        "30 ms and a peek later the key is held {after:?}, and before it was for {before:?}"
    );
    Ok(())
}

/// Known from stores that let a window's counter go while the next window still needs it, or that floor an expiry to
/// the same millisecond: the state was gone right after an admitted hit.
async fn everything_expires(bed: TestBed, algorithm: Algorithm) -> Outcome {
    for (scope, quota) in [
        ("second", "10/s"),
        ("hour", "10/hour"),
        ("month", "10/30 days"),
        ("longest", "10/400 days"),
        ("millisecond", "1000/ms"),
        ("odd", "999983/day"),
    ] {
        let alice = bed.scoped(scope, "alice", policy(algorithm, quota));
        let started = Instant::now();
        let answer = bed.now().hit(&alice, 7).await?;
        let reset_after = answer.admitted()?.reset_after;
        // A counter of the server's own reads the clock in whole milliseconds, and counts the reset from there.
        let tick = match answer.source {
            Source::NativeCounter => Duration::from_millis(1),
            _ => Duration::ZERO,
        };
        match bed.held(&alice).await? {
            Held::For(left) => ensure!(
                left + started.elapsed() + tick >= reset_after,
                "a key of {quota} with a reset in {reset_after:?} is held for only {left:?}"
            ),
            // It may have been as good as never seen by the time it was looked for.
            Held::Nothing => ensure!(
                started.elapsed() >= reset_after,
                "a key of {quota} with a reset in {reset_after:?} is not held"
            ),
            Held::ForGood => {
                return Err(Stop::failed(format!("a key of {quota} is held for ever")));
            }
        }
    }
    Ok(())
}

async fn reset_writes_nothing(bed: TestBed, algorithm: Algorithm) -> Outcome {
    let alice = bed.counter("alice", algorithm, "10/day");
    bed.now().hit(&alice, 1).await?.admitted()?;
    ensure!(
        bed.held(&alice).await? != Held::Nothing,
        "a key in use is held"
    );
    ensure_eq!(bed.reset([&alice]).await?, 1, "one key was there");
    ensure_eq!(
        bed.held(&alice).await?,
        Held::Nothing,
        "a key that was reset"
    );
    Ok(())
}

/// Known from counters that lost their expiry in a crash or a restore and then denied for ever.
async fn repairs_expiry(bed: TestBed, algorithm: Algorithm) -> Outcome {
    let alice = bed.counter("alice", algorithm, "10/day");
    bed.now().hit(&alice, 1).await?.admitted()?;
    bed.lose_expiry(&alice).await?;
    ensure_eq!(
        bed.held(&alice).await?,
        Held::ForGood,
        "the harness has taken the expiry away"
    );
    let answer = bed.now().hit(&alice, 1).await?;
    answer.admitted()?.leaving(8)?;
    let held = bed.held(&alice).await?;
    ensure!(
        matches!(held, Held::For(left) if left + Duration::from_secs(60) >= answer.reset_after),
        "after the next hit the key expires again, but it is held {held:?}"
    );
    Ok(())
}
