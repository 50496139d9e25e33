//! Many tasks, one key: exactly the limit is admitted.

use std::sync::Arc;

use tollgate_core::{Algorithm, CasStore, Limiter, Policies};

use crate::backend::MapBackend;
use crate::{limiter, policy};

type CasLimiter = Limiter<Arc<CasStore<MapBackend>>>;

/// How many of `tasks` times `hits` hits are admitted.
async fn admitted(limiter: &CasLimiter, tasks: usize, hits: usize) -> usize {
    let tasks: Vec<_> = (0..tasks)
        .map(|_| {
            let limiter = limiter.clone();
            tokio::spawn(async move {
                let mut admitted = 0;
                for _ in 0..hits {
                    let decision = limiter.hit("hot").await.expect("answered");
                    assert!(!decision.is_degraded(), "{:?}", decision.error());
                    admitted += usize::from(decision.is_allowed());
                }
                admitted
            })
        })
        .collect();
    let mut sum = 0;
    for task in tasks {
        sum += task.await.expect("no task panics");
    }
    sum
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn exactly_the_limit_is_admitted_whoever_is_quicker() {
    for algorithm in Algorithm::ALL {
        let limiter = limiter(MapBackend::new(), policy(algorithm, "100/hour"));
        assert_eq!(admitted(&limiter, 8, 25).await, 100, "{algorithm}");
        assert!(!limiter.hit("hot").await.unwrap().is_allowed());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn policies_that_are_charged_together_stay_together() {
    let named = |name: &str, algorithm, quota: &str| {
        tollgate_core::Policy::new(name, algorithm, quota.parse().unwrap()).unwrap()
    };
    let policies = Policies::new([
        named("tight", Algorithm::Gcra, "60/hour"),
        named("wide", Algorithm::SlidingLog, "1000/hour"),
    ]);
    let limiter = limiter(MapBackend::new(), policies.unwrap());
    assert_eq!(admitted(&limiter, 8, 20).await, 60);
    let left: Vec<_> = limiter
        .peek("hot")
        .await
        .unwrap()
        .each()
        .map(|each| each.remaining())
        .collect();
    assert_eq!(left, [0, 940]);
}
