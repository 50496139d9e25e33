//! Nobody sees a batch half done: whoever asks about all of its keys finds all of them charged, or none.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use futures::future::{join, join_all};
use tollgate_core::{
    Algorithm, Batch, Check, Cost, Key, Op, Policy, PolicyDecision, Quota, Space, Store, Verdicts,
};
use tollgate_postgres::{PostgresStore, tollgate_core};

/// So few that some batches are denied, and so slow that none of it flows back during the test.
const LIMIT: u64 = 400;
const FOR: Duration = Duration::from_millis(1_500);

fn policy(algorithm: Algorithm) -> Policy {
    let quota = Quota::new(LIMIT, Quota::MAX_PERIOD).unwrap();
    Policy::new("p", algorithm, quota).unwrap()
}

/// One batch that asks `op` of every key.
async fn ask(store: &PostgresStore, counters: &[(Space, Policy)], op: Op) -> Verdicts {
    let checks: Vec<Check<'_>> = counters
        .iter()
        .map(|(space, policy)| Check {
            key: Key::new(space, b"subject").unwrap(),
            policy,
            op,
        })
        .collect();
    store.apply(Batch::new(&checks).unwrap()).await.unwrap()
}

fn remaining(counters: &[(Space, Policy)], verdicts: &Verdicts) -> Vec<u64> {
    let pairs = counters.iter().zip(verdicts.as_slice());
    pairs
        .map(|((_, policy), verdict)| {
            PolicyDecision::from_verdict(policy, *verdict, verdicts.at(), Cost::ONE, false)
                .remaining()
        })
        .collect()
}

/// One store charges every counter together, another one looks at them together, as often as there is time.
async fn nobody_sees_half(algorithms: &[Algorithm], lookers: usize) {
    let server = support::server();
    let schema = support::schema(&support::pool(&server, 1)).await;
    let store = || {
        let builder = PostgresStore::builder(support::pool(&server, 4));
        builder.schema(schema.clone()).build().unwrap()
    };
    let (charging, looking) = (store(), store());
    let until = Instant::now() + FOR;
    let denied = AtomicU64::new(0);
    for round in 0.. {
        let scopes = (0..algorithms.len()).map(|number| format!("{round}/{number}"));
        let counters: Vec<(Space, Policy)> = scopes
            .zip(algorithms)
            .map(|(scope, algorithm)| {
                let policy = policy(*algorithm);
                (Space::new("", &scope, &policy), policy)
            })
            .collect();
        ask(&charging, &counters, Op::Hit(Cost::ONE)).await;
        let charges = async {
            for _ in 1..LIMIT {
                ask(&charging, &counters, Op::Hit(Cost::ONE)).await;
                if Instant::now() > until {
                    break;
                }
            }
        };
        let looks = join_all((0..lookers).map(|number| {
            let (looking, counters, denied) = (&looking, &counters, &denied);
            async move {
                loop {
                    // A peek, or a hit that is too much once anything was charged.
                    let op = if number % 2 == 0 {
                        Op::Peek(Cost::ONE)
                    } else {
                        Op::Hit(Cost::new(LIMIT).unwrap())
                    };
                    let verdicts = ask(looking, counters, op).await;
                    let remaining = remaining(counters, &verdicts);
                    let first = remaining[0];
                    assert!(remaining.iter().all(|one| *one == first), "{remaining:?}");
                    denied.fetch_add(u64::from(!verdicts.is_allowed()), Ordering::Relaxed);
                    if first == 0 || Instant::now() > until {
                        return;
                    }
                }
            }
        }));
        join(charges, looks).await;
        if Instant::now() > until {
            break;
        }
    }
    assert!(denied.into_inner() > 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bucket_and_a_log_are_seen_together() {
    nobody_sees_half(&[Algorithm::TokenBucket, Algorithm::SlidingLog], 2).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_buckets_are_seen_together() {
    nobody_sees_half(&[Algorithm::TokenBucket, Algorithm::Gcra], 2).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_logs_are_seen_together() {
    nobody_sees_half(&[Algorithm::SlidingLog, Algorithm::SlidingLog], 2).await;
}

/// Many callers share a statement, and a batch is so wide that its counters are read by one query.
#[tokio::test(flavor = "multi_thread")]
async fn wide_batches_of_many_callers_are_seen_together() {
    let kinds = [
        Algorithm::FixedWindow,
        Algorithm::SlidingLog,
        Algorithm::SlidingWindow,
    ];
    let nine: Vec<Algorithm> = kinds.iter().copied().cycle().take(9).collect();
    nobody_sees_half(&nine, 16).await;
}
