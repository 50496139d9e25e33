//! Many tasks at once: exactly the limit is admitted, and nobody's answer is lost.
#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on fails where it stands"
)]

mod common;

use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use tollgate_core::{Algorithm, Limiter, Policy, Quota};
use tollgate_redis::{RedisStore, tollgate_core};

fn limiter(prefix: &str, algorithm: Algorithm, limit: u64) -> Limiter<RedisStore> {
    let quota = Quota::new(limit, Duration::from_secs(100 * 86_400)).unwrap();
    Limiter::new(
        common::store(),
        Policy::new("exact", algorithm, quota).unwrap(),
    )
    .prefix(prefix)
}

/// Hits from `tasks` tasks at once; how many were admitted.
async fn admitted(limiter: &Arc<Limiter<RedisStore>>, tasks: usize, hits: usize) -> usize {
    let task = |task: usize| {
        let limiter = limiter.clone();
        tokio::spawn(async move {
            let mut admitted = 0;
            for hit in 0..hits {
                let subject = format!("subject {}", (task + hit) % 3);
                admitted += usize::from(limiter.hit(&subject).await.unwrap().is_allowed());
            }
            admitted
        })
    };
    let counts = join_all((0..tasks).map(task)).await;
    counts.into_iter().map(Result::unwrap).sum()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tasks_that_share_calls_are_admitted_exactly_to_the_limit() {
    for algorithm in Algorithm::ALL {
        let limiter = Arc::new(limiter(
            &format!("shared-calls-{algorithm}"),
            algorithm,
            100,
        ));
        assert_eq!(admitted(&limiter, 64, 30).await, 300, "{algorithm}");
    }
}

#[tokio::test]
async fn a_caller_that_is_never_polled_again_holds_nobody_up() {
    let limiter = limiter("unpolled", Algorithm::TokenBucket, 100);
    let mut stuck = Box::pin(limiter.hit("a"));
    // Polled once: its call is under way.
    let _ = futures::poll!(&mut stuck);
    for _ in 0..3 {
        assert!(limiter.hit("a").await.unwrap().is_allowed());
    }
    let many = join_all((0..50).map(|_| limiter.hit("a"))).await;
    assert!(
        many.into_iter()
            .all(|decision| decision.unwrap().is_allowed())
    );
    assert!(stuck.await.unwrap().is_allowed());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dropped_callers_take_nobody_elses_hit_with_them() {
    let limiter = Arc::new(limiter("dropped", Algorithm::FixedWindow, 1_000_000));
    let mut kept = 0;
    let mut dropped = 0;
    for round in 0..200u64 {
        let hits: Vec<_> = (0..8)
            .map(|_| {
                let limiter = limiter.clone();
                tokio::spawn(async move { limiter.hit("a").await.unwrap().is_allowed() })
            })
            .collect();
        let limiter = limiter.clone();
        let doomed = tokio::spawn(async move { limiter.hit("a").await.unwrap().is_allowed() });
        tokio::time::sleep(Duration::from_micros(round % 7 * 20)).await;
        doomed.abort();
        match doomed.await {
            Ok(_) => kept += 1,
            Err(_) => dropped += 1,
        }
        for hit in join_all(hits).await {
            assert!(hit.unwrap());
            kept += 1;
        }
    }
    let left = limiter.peek("a").await.unwrap().remaining();
    let charged = 1_000_000 - left;
    assert!(charged >= kept, "{charged} charged, {kept} answered");
    assert!(
        charged <= kept + dropped,
        "{charged} charged, {kept} answered, {dropped} dropped"
    );
}
