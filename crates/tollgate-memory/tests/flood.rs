//! A full store: whatever keys anybody makes up, no key is admitted more than its limit.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support;

use std::collections::HashMap;

use proptest::prelude::*;
use support::{Limit, at, hit, judge};
use tollgate_memory::{
    Algorithm, Clock, ManualClock, MemoryStore, Op, Rule, State, Store, Timestamp,
};

/// What happens to the store in one step. Keys are numbers; a small one is an old acquaintance, a flood is never seen.
#[derive(Clone, Debug)]
enum Act {
    /// Hits a key, so many times in a row.
    Hit {
        key: u8,
        times: u8,
    },
    /// So many new keys, each hit so often.
    Flood {
        keys: u16,
        times: u8,
    },
    Peek {
        key: u8,
    },
    Wait {
        micros: u64,
    },
}

fn acts(longest_wait: u64) -> impl Strategy<Value = Vec<Act>> {
    let act = prop_oneof![
        6 => (0_u8..6, 1_u8..5).prop_map(|(key, times)| Act::Hit { key, times }),
        3 => (1_u16..60, 1_u8..4).prop_map(|(keys, times)| Act::Flood { keys, times }),
        1 => (0_u8..6).prop_map(|key| Act::Peek { key }),
        3 => (0..=longest_wait).prop_map(|micros| Act::Wait { micros }),
    ];
    proptest::collection::vec(act, 1..40)
}

fn algorithms() -> impl Strategy<Value = Algorithm> {
    proptest::sample::select(Algorithm::ALL.to_vec())
}

/// Carries out the acts and reports every hit: the key, when, and whether it was admitted.
fn play(
    store: &MemoryStore<ManualClock>,
    clock: &ManualClock,
    limit: &Limit,
    named: bool,
    acts: &[Act],
) -> Vec<(String, Timestamp, bool)> {
    let mut hits = Vec::new();
    let mut strangers = 0_u32;
    let mut ask = |key: String, op| {
        let now = clock.now();
        let verdict = judge(store, limit, key.as_bytes(), op, named.then_some(now));
        if matches!(op, Op::Hit(_)) {
            hits.push((key, now, verdict.is_allowed()));
        }
    };
    for act in acts {
        match act {
            Act::Hit { key, times } => {
                (0..*times).for_each(|_| ask(format!("known {key}"), hit(1)));
            }
            Act::Peek { key } => ask(format!("known {key}"), Op::Peek(tollgate_memory::Cost::ONE)),
            Act::Wait { micros } => clock.advance(std::time::Duration::from_micros(*micros)),
            Act::Flood { keys, times } => {
                for _ in 0..*keys {
                    strangers += 1;
                    (0..*times).for_each(|_| ask(format!("stranger {strangers}"), hit(1)));
                }
            }
        }
    }
    hits
}

fn store(capacity: u64) -> (MemoryStore<ManualClock>, ManualClock) {
    let clock = ManualClock::default();
    let builder = MemoryStore::builder()
        .max_capacity(capacity)
        .clock(clock.clone());
    (builder.build().unwrap(), clock)
}

fn by_key(hits: Vec<(String, Timestamp, bool)>) -> HashMap<String, Vec<(Timestamp, bool)>> {
    let mut keys: HashMap<String, Vec<(Timestamp, bool)>> = HashMap::new();
    for (key, now, allowed) in hits {
        keys.entry(key).or_default().push((now, allowed));
    }
    keys
}

/// What core admits of the same hits on a state of the key's own.
fn admitted_alone(rule: &Rule, hits: &[(Timestamp, bool)]) -> usize {
    let mut state: Option<State> = None;
    hits.iter()
        .filter(|(now, _)| rule.step(&mut state, *now, hit(1)).is_allowed())
        .count()
}

fn admitted(hits: &[(Timestamp, bool)]) -> Vec<Timestamp> {
    let allowed = hits.iter().filter(|(_, allowed)| *allowed);
    allowed.map(|(now, _)| *now).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    /// While no time passes, a key has its limit and no more, however often it was driven out in between.
    #[test]
    fn a_flood_in_one_instant_buys_nothing(
        algorithm in algorithms(),
        capacity in 1_u64..80,
        named in any::<bool>(),
        acts in acts(0),
    ) {
        let limit = Limit::of(algorithm, "7/minute");
        let (store, clock) = store(capacity);
        for (key, hits) in by_key(play(&store, &clock, &limit, named, &acts)) {
            let count = admitted(&hits).len();
            prop_assert!(count <= 7, "{key} was admitted {count} times");
        }
    }

    /// Where states fade alike, a key that is admitted would also have been by a state of its own.
    #[test]
    fn a_flood_over_time_buys_nothing_from_a_bucket_or_a_log(
        algorithm in proptest::sample::select(vec![
            Algorithm::TokenBucket, Algorithm::LeakyBucket, Algorithm::Gcra, Algorithm::SlidingLog,
        ]),
        capacity in 1_u64..80,
        named in any::<bool>(),
        quota in proptest::sample::select(vec!["5/second", "7/3 seconds", "300000/second"]),
        acts in acts(900_000),
    ) {
        let limit = Limit::of(algorithm, quota);
        let (store, clock) = store(capacity);
        for (key, hits) in by_key(play(&store, &clock, &limit, named, &acts)) {
            let mut own: Option<State> = None;
            for now in admitted(&hits) {
                let verdict = limit.policy.rule().step(&mut own, now, hit(1));
                prop_assert!(verdict.is_allowed(), "{key} was admitted at {now}");
            }
        }
    }

    /// A window may begin later than the key's own would have, never earlier: it admits no more in all.
    #[test]
    fn a_flood_over_time_buys_nothing_from_a_fixed_window(
        capacity in 1_u64..80,
        named in any::<bool>(),
        acts in acts(900_000),
    ) {
        let limit = Limit::of(Algorithm::FixedWindow, "5/second");
        let (store, clock) = store(capacity);
        for (key, hits) in by_key(play(&store, &clock, &limit, named, &acts)) {
            let (here, alone) = (admitted(&hits).len(), admitted_alone(limit.policy.rule(), &hits));
            prop_assert!(here <= alone, "{key} was admitted {here} times, alone {alone}");
        }
    }

    /// Whenever its windows begin, what a sliding window admitted never weighs more than the limit (and the unit that the
    /// estimate cuts off), where every hit fades to nothing over one period.
    #[test]
    fn a_flood_over_time_buys_nothing_from_a_sliding_window(
        capacity in 1_u64..80,
        named in any::<bool>(),
        acts in acts(900_000),
    ) {
        const LIMIT: u64 = 5;
        const PERIOD: u64 = 1_000_000;
        let limit = Limit::of(Algorithm::SlidingWindow, "5/second");
        let (store, clock) = store(capacity);
        for (key, hits) in by_key(play(&store, &clock, &limit, named, &acts)) {
            let admitted = admitted(&hits);
            for (index, now) in admitted.iter().enumerate() {
                let weight: u64 = admitted[..=index]
                    .iter()
                    .map(|then| PERIOD.saturating_sub(now.as_micros() - then.as_micros()))
                    .sum();
                prop_assert!(weight < (LIMIT + 1) * PERIOD, "{key} at {now}");
            }
        }
    }

    /// Policies of several kinds share the store and its overflow, and each of them keeps its limit.
    #[test]
    fn policies_of_all_kinds_overflow_together(capacity in 1_u64..40, hits in 1_u8..40) {
        let (store, _) = store(capacity);
        let limits: Vec<Limit> = Algorithm::ALL
            .into_iter()
            .map(|algorithm| Limit::new(support::policy(algorithm.name(), algorithm, "3/hour")))
            .collect();
        let mut counts = vec![0; limits.len()];
        for round in 0..hits {
            for (limit, count) in limits.iter().zip(&mut counts) {
                *count += u32::from(judge(&store, limit, b"victim", hit(1), None).is_allowed());
                for stranger in 0..20_u8 {
                    let _ = judge(&store, limit, &[round, stranger], hit(1), None);
                }
            }
        }
        prop_assert!(counts.iter().all(|count| (1..=3).contains(count)), "{counts:?}");
    }
}

/// A store of 10,000 keys in use meets a newcomer with a limit of 10 who hits 1,000 times.
#[test]
fn a_newcomer_to_a_full_store_has_exactly_its_limit() {
    for algorithm in Algorithm::ALL {
        let (store, _) = store(10_000);
        let (warm, fresh) = (
            Limit::of(algorithm, "1000/hour"),
            Limit::of(algorithm, "10/hour"),
        );
        let steady = |round: u32| {
            for key in (0..10_000_u32).filter(|key| key % 10 == round % 10) {
                let _ = judge(&store, &warm, &key.to_be_bytes(), hit(1), None);
            }
        };
        (0..20).for_each(steady);
        assert_eq!(store.stats().keys, 10_000);
        let mut count = 0;
        for attempt in 0..1_000 {
            count += u32::from(judge(&store, &fresh, b"newcomer", hit(1), None).is_allowed());
            if attempt % 50 == 0 {
                steady(attempt / 50);
            }
        }
        assert_eq!(count, 10, "{algorithm}");
    }
}

/// Between any two of its hits, a victim sees the whole store turned over.
#[test]
fn a_victim_of_a_flood_has_no_more_than_its_limit() {
    for algorithm in Algorithm::ALL {
        let (store, _) = store(50);
        let limit = Limit::of(algorithm, "100/hour");
        let mut count = 0;
        for attempt in 0..400_u32 {
            count += u32::from(judge(&store, &limit, b"victim", hit(1), None).is_allowed());
            for stranger in 0..60_u32 {
                let key = [attempt.to_be_bytes(), stranger.to_be_bytes()].concat();
                let _ = judge(&store, &limit, &key, hit(1), None);
            }
        }
        assert!((1..=100).contains(&count), "{algorithm}: {count}");
        assert!(store.stats().evicted_live > 10_000);
        assert!(store.stats().keys <= 50 + 16);
    }
}

/// Who flushes its own key out by making up others finds it as it was.
#[test]
fn an_attacker_who_flushes_its_own_key_gains_nothing() {
    for algorithm in Algorithm::ALL {
        let (store, clock) = store(64);
        let limit = Limit::of(algorithm, "10/hour");
        let mut count = 0;
        let mut made_up = 0_u64;
        for _ in 0..200 {
            // In use, so that the clerk decides about it.
            for _ in 0..3 {
                count += u32::from(judge(&store, &limit, b"attacker", hit(1), None).is_allowed());
            }
            for _ in 0..300 {
                made_up += 1;
                for _ in 0..2 {
                    let _ = judge(&store, &limit, &made_up.to_be_bytes(), hit(1), None);
                }
            }
            clock.advance(std::time::Duration::from_millis(150));
        }
        assert!((1..=10).contains(&count), "{algorithm}: {count}");
    }
}

/// While nobody else shares its cell, a key that was driven out goes on exactly where it was.
#[test]
fn a_key_that_returns_goes_on_exactly() {
    for algorithm in Algorithm::ALL {
        let limit = Limit::of(algorithm, "10/hour");
        let rule = limit.policy.rule();
        let (store, _) = store(1);
        let mut own: Option<State> = None;
        for step in 0..12_u64 {
            let now = at(1_000_000_000_000_000 + step * 70_000_000);
            let here = judge(&store, &limit, b"key", hit(1), Some(now));
            assert_eq!(
                here,
                rule.step(&mut own, now, hit(1)),
                "{algorithm}, step {step}"
            );
            // Keys of another policy drive it out; it overflows into a cell of its own space.
            let other = Limit::new(support::policy("other", algorithm, "10/hour"));
            for stranger in 0..200_u8 {
                let _ = judge(&store, &other, &[stranger], hit(1), Some(now));
            }
        }
        assert!(store.stats().evicted_live > 3);
    }
}

/// A denied hit and a peek make no entry, so a flood of them drives nobody out.
#[test]
fn denied_hits_and_peeks_take_no_room() {
    let (store, _) = store(100);
    let blocked = Limit::of(Algorithm::TokenBucket, "0/second");
    let open = Limit::of(Algorithm::TokenBucket, "5/second");
    for key in 0..1_000_u32 {
        assert!(!judge(&store, &blocked, &key.to_be_bytes(), hit(1), None).is_allowed());
        let peek = Op::Peek(tollgate_memory::Cost::ONE);
        assert!(judge(&store, &open, &key.to_be_bytes(), peek, None).is_allowed());
    }
    assert_eq!(store.stats().keys, 0);
}

/// After a reset a key begins anew even if its state went into a cell that it shares with strangers.
#[test]
fn a_reset_reaches_what_overflowed() {
    for algorithm in Algorithm::ALL {
        let (store, _) = store(4);
        let limit = Limit::of(algorithm, "2/hour");
        for _ in 0..2 {
            assert!(judge(&store, &limit, b"key", hit(1), None).is_allowed());
        }
        for stranger in 0..200_u32 {
            let _ = judge(&store, &limit, &stranger.to_be_bytes(), hit(1), None);
        }
        assert!(!judge(&store, &limit, b"key", hit(1), None).is_allowed());
        let keys = [limit.check(b"key", hit(1)).key];
        futures::executor::block_on(store.reset(&keys)).unwrap();
        assert!(judge(&store, &limit, b"key", hit(1), None).is_allowed());
        assert!(judge(&store, &limit, b"key", hit(1), None).is_allowed());
        assert!(!judge(&store, &limit, b"key", hit(1), None).is_allowed());
    }
}
