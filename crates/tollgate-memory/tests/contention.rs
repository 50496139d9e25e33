//! Many threads at once: exactly the limit is admitted, and batches are all or none.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support;

use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};

use support::{Limit, hit, judge, policy};
use tollgate_memory::{
    Algorithm, Batch, Check, InProcessStore, Limiter, MemoryStore, Op, Policies,
};

const THREADS: u64 = 8;

/// Runs `work` in all threads at once and adds up what they return.
fn in_threads(work: impl Fn(u64) -> u64 + Sync) -> u64 {
    let start = Barrier::new(usize::try_from(THREADS).unwrap());
    let total = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (work, start, total) = (&work, &start, &total);
            scope.spawn(move || {
                start.wait();
                total.fetch_add(work(thread), Ordering::Relaxed);
            });
        }
    });
    total.into_inner()
}

#[test]
fn threads_on_one_key_are_admitted_exactly_its_limit() {
    for algorithm in Algorithm::ALL {
        let store = MemoryStore::new();
        let limit = Limit::of(algorithm, "1000/400 days");
        let admitted = in_threads(|_| {
            let hits = (0..500).map(|_| judge(&store, &limit, b"key", hit(1), None));
            hits.map(|verdict| u64::from(verdict.is_allowed())).sum()
        });
        assert_eq!(admitted, 1_000, "{algorithm}");
    }
}

#[test]
fn threads_on_one_key_of_a_store_that_overflows_are_admitted_no_more_than_its_limit() {
    for algorithm in Algorithm::ALL {
        let store = MemoryStore::builder().max_capacity(64).build().unwrap();
        let limit = Limit::of(algorithm, "1000/400 days");
        let admitted = in_threads(|thread| {
            let mut admitted = 0;
            for attempt in 0..500_u64 {
                admitted += u64::from(judge(&store, &limit, b"key", hit(1), None).is_allowed());
                let stranger = (thread * 1_000 + attempt).to_be_bytes();
                let _ = judge(&store, &limit, &stranger, hit(1), None);
                let _ = judge(&store, &limit, &stranger, hit(1), None);
            }
            admitted
        });
        assert!((1..=1_000).contains(&admitted), "{algorithm}: {admitted}");
        assert!(store.stats().evicted_live > 0);
    }
}

#[test]
fn a_limiter_without_a_future_is_as_exact() {
    let limiter = Limiter::new(
        MemoryStore::new(),
        policy("p", Algorithm::TokenBucket, "700/400 days"),
    );
    let admitted = in_threads(|_| {
        let hits = (0..200).map(|_| limiter.hit_now("key").unwrap().is_allowed());
        hits.map(u64::from).sum()
    });
    assert_eq!(admitted, 700);
}

/// Two limits of 200 or more on one key, 800 calls: the tighter one is met exactly, and the other pays no more.
#[test]
fn two_limits_on_one_key_are_charged_together() {
    for algorithm in Algorithm::ALL {
        let policies = Policies::new([
            policy("tight", algorithm, "200/400 days"),
            policy("wide", algorithm, "700/400 days"),
        ]);
        let limiter = Limiter::new(MemoryStore::new(), policies.unwrap());
        let admitted = in_threads(|_| {
            let hits = (0..100).map(|_| limiter.hit_now("key").unwrap().is_allowed());
            hits.map(u64::from).sum()
        });
        assert_eq!(admitted, 200, "{algorithm}");
        let left = limiter.peek_now("key").unwrap();
        let remaining: Vec<u64> = left.each().map(|decision| decision.remaining()).collect();
        assert_eq!(remaining, [0, 500], "{algorithm}");
    }
}

/// Batches over the same keys in opposite order: no deadlock, all of a batch or none of it, exactly the limit.
#[test]
fn batches_in_opposite_order_neither_deadlock_nor_charge_in_part() {
    for algorithm in Algorithm::ALL {
        let store = MemoryStore::new();
        let limit = Limit::of(algorithm, "300/400 days");
        let keys: Vec<Vec<u8>> = (0..8_u8).map(|key| vec![b'k', key]).collect();
        let admitted = in_threads(|thread| {
            let mut checks: Vec<Check<'_>> =
                keys.iter().map(|key| limit.check(key, hit(1))).collect();
            if thread % 2 == 1 {
                checks.reverse();
            }
            let batch = Batch::new(&checks).unwrap();
            let hits = (0..100).map(|_| store.judge(&batch).unwrap().is_allowed());
            hits.map(u64::from).sum()
        });
        assert_eq!(admitted, 300, "{algorithm}");
        for key in &keys {
            let peek = Op::Peek(tollgate_memory::Cost::ONE);
            assert!(!judge(&store, &limit, key, peek, None).is_allowed());
        }
    }
}
