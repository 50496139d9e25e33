//! The table under a scheduler that tries other interleavings on every run: shuttle's lock in place of the real one.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use shuttle::{check_random, thread};
use tollgate_core::{Algorithm, Batch, Check, Cost, Key, Op, Policy, Space, Timestamp, Verdict};

use super::Table;
use crate::entry::Moment;
use crate::shard::Shard;
use crate::sync::Lock;

impl<T> Lock<T> for shuttle::sync::Mutex<T> {
    type Guard<'a>
        = shuttle::sync::MutexGuard<'a, T>
    where
        T: 'a;

    fn new(value: T) -> Self {
        Self::new(value)
    }

    fn lock(&self) -> Self::Guard<'_> {
        self.lock().unwrap()
    }
}

type Modelled = Table<ahash::RandomState, shuttle::sync::Mutex<Shard>>;

const RUNS: usize = 2_000;
const NOW: u64 = 1_000_000_000_000_000;

struct Limit {
    policy: Policy,
    space: Space,
}

impl Limit {
    fn new(algorithm: Algorithm, quota: &str) -> Self {
        let policy = Policy::new("p", algorithm, quota.parse().unwrap()).unwrap();
        let space = Space::new("", "", &policy);
        Self { policy, space }
    }

    fn check<'a>(&'a self, subject: &'a [u8], op: Op) -> Check<'a> {
        Check {
            key: Key::new(&self.space, subject).unwrap(),
            policy: &self.policy,
            op,
        }
    }
}

fn table(capacity: usize) -> Arc<Modelled> {
    Arc::new(Table::new(
        capacity,
        ahash::RandomState::with_seeds(1, 2, 3, 4),
    ))
}

fn now() -> Moment {
    Moment::of_clock(Timestamp::from_micros(NOW).unwrap())
}

/// Judges as the store does: what is at hand first, then in full.
fn judge(table: &Modelled, check: &Check<'_>) -> Verdict {
    match table.judge_bucket(check, || now().judged) {
        Some((_, _, verdict, _)) => verdict,
        None => table.judge(check, now).1,
    }
}

/// Runs three threads of `work` and adds up what they return.
fn three_threads(work: impl Fn(usize) -> u64 + Send + Sync + 'static) -> u64 {
    let work = Arc::new(work);
    let total = Arc::new(AtomicU64::new(0));
    let threads: Vec<_> = (0..3)
        .map(|thread| {
            let (work, total) = (Arc::clone(&work), Arc::clone(&total));
            thread::spawn(move || total.fetch_add(work(thread), Ordering::Relaxed))
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
    total.load(Ordering::Relaxed)
}

#[test]
fn one_key_is_admitted_exactly_its_limit() {
    for algorithm in Algorithm::ALL {
        let body = move || {
            let table = table(64);
            let limit = Limit::new(algorithm, "4/hour");
            let admitted = three_threads(move |_| {
                let hit = limit.check(b"key", Op::Hit(Cost::ONE));
                (0..3)
                    .map(|_| u64::from(judge(&table, &hit).is_allowed()))
                    .sum()
            });
            assert_eq!(admitted, 4);
        };
        check_random(body, RUNS / 6);
    }
}

#[test]
fn batches_in_opposite_order_are_all_or_none_and_never_wait_for_each_other() {
    let body = || {
        let table = table(64);
        let limit = Arc::new(Limit::new(Algorithm::TokenBucket, "2/hour"));
        let (shared, judged) = (Arc::clone(&table), Arc::clone(&limit));
        let admitted = three_threads(move |thread| {
            let mut checks: Vec<Check<'_>> = [b"a", b"b", b"c"]
                .iter()
                .map(|key| judged.check(*key, Op::Hit(Cost::ONE)))
                .collect();
            checks.rotate_left(thread);
            if thread == 2 {
                checks.reverse();
            }
            let batch = Batch::new(&checks).unwrap();
            u64::from(shared.judge_many(&batch, now).1.is_allowed())
        });
        assert_eq!(admitted, 2);
        for key in [b"a", b"b", b"c"] {
            let peek = limit.check(key, Op::Peek(Cost::ONE));
            assert!(!judge(&table, &peek).is_allowed());
        }
    };
    check_random(body, RUNS);
}

#[test]
fn a_key_that_is_driven_out_while_it_is_hit_is_admitted_no_more_than_its_limit() {
    let body = || {
        let table = table(1);
        let limit = Limit::new(Algorithm::TokenBucket, "3/hour");
        let admitted = three_threads(move |thread| {
            let mut admitted = 0;
            for attempt in 0..4_u8 {
                let victim = limit.check(b"victim", Op::Hit(Cost::ONE));
                admitted += u64::from(judge(&table, &victim).is_allowed());
                for stranger in 0..8_u8 {
                    let key = [u8::try_from(thread).unwrap(), attempt, stranger];
                    let _ = judge(&table, &limit.check(&key, Op::Hit(Cost::ONE)));
                }
            }
            admitted
        });
        assert!((1..=3).contains(&admitted), "{admitted}");
    };
    check_random(body, RUNS / 10);
}

/// The clerk lets go of a key while a thread hits it: whatever comes first, no charge is lost.
#[test]
fn a_key_that_the_clerk_releases_while_it_is_hit_keeps_its_charges() {
    let body = || {
        let table = table(16);
        let limit = Limit::new(Algorithm::SlidingLog, "3/hour");
        let hash = table.hash(&limit.check(b"key", Op::Peek(Cost::ONE)).key);
        let admitted = three_threads(move |thread| {
            let hit = limit.check(b"key", Op::Hit(Cost::ONE));
            let mut admitted = 0;
            for _ in 0..3 {
                admitted += u64::from(judge(&table, &hit).is_allowed());
                if thread == 0 {
                    if let Some(entry) = (Lock::lock(table.shard(hash)).entries).iter_mut().next() {
                        entry.make_resident(0);
                    }
                    table.release(hash, true, now().clock);
                }
            }
            admitted
        });
        assert_eq!(admitted, 3);
    };
    check_random(body, RUNS);
}
