//! Waiting for admission, on tokio's paused clock: no test here takes longer than its arithmetic.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, timeout};
use tollgate_core::{
    Acquire, Algorithm, Clock, Cost, ErrorKind, FailureMode, Limiter, Policies, Policy, Quota,
    Timestamp,
};

use crate::stores::{FailingStore, MapStore, start};

const SECOND: Duration = Duration::from_secs(1);

/// The store's clock goes with tokio's.
#[derive(Debug)]
struct TokioClock(Instant);

impl Clock for TokioClock {
    fn now(&self) -> Timestamp {
        start() + self.0.elapsed()
    }
}

type TimedStore = Arc<MapStore<TokioClock>>;

fn store() -> TimedStore {
    MapStore::with_clock(TokioClock(Instant::now()))
}

fn limiter(algorithm: Algorithm, quota: &str) -> Limiter<TimedStore> {
    let policy = Policy::new("wait", algorithm, quota.parse().expect("legal"));
    Limiter::new(store(), policy.expect("legal"))
}

fn units(units: u64) -> Cost {
    Cost::new(units).expect("at least one")
}

#[tokio::test(start_paused = true)]
async fn what_fits_is_admitted_without_waiting() {
    let limiter = limiter(Algorithm::TokenBucket, "10/minute");
    let began = Instant::now();
    let decision = limiter
        .acquire("a", Acquire::within(Duration::ZERO).cost(units(10)))
        .await;
    assert!(decision.unwrap().is_allowed());
    assert_eq!(began.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn it_waits_exactly_as_long_as_the_store_says() {
    for (algorithm, wait) in [
        (Algorithm::TokenBucket, Duration::from_secs(12)),
        (Algorithm::FixedWindow, Duration::from_secs(60)),
        (Algorithm::SlidingLog, Duration::from_secs(60)),
    ] {
        let limiter = limiter(algorithm, "10/minute");
        assert!(limiter.hit_n("a", 10).await.unwrap().is_allowed());
        let began = Instant::now();
        let acquire = Acquire::within(Duration::from_secs(60)).cost(units(2));
        assert!(limiter.acquire("a", acquire).await.unwrap().is_allowed());
        assert_eq!(began.elapsed(), wait, "{algorithm}");
    }
}

/// tokio's timer has a resolution of one millisecond, and rounds up.
#[tokio::test(start_paused = true)]
async fn it_never_comes_back_early_and_less_than_a_millisecond_late() {
    let limiter = limiter(Algorithm::TokenBucket, "7/second");
    assert!(limiter.hit_n("a", 7).await.unwrap().is_allowed());
    let began = Instant::now();
    assert!(
        limiter
            .acquire("a", Acquire::within(SECOND))
            .await
            .unwrap()
            .is_allowed()
    );
    let waited = began.elapsed();
    let exact = Duration::from_micros(142_858);
    assert!(
        waited >= exact && waited < exact + Duration::from_millis(1),
        "{waited:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn it_gives_up_at_once_if_the_wait_would_be_too_long() {
    let limiter = limiter(Algorithm::TokenBucket, "10/minute");
    assert!(limiter.hit_n("a", 10).await.unwrap().is_allowed());
    let began = Instant::now();
    let decision = limiter
        .acquire("a", Acquire::within(Duration::from_micros(5_999_999)))
        .await
        .unwrap();
    assert!(!decision.is_allowed());
    assert_eq!(decision.retry_after(), Some(Duration::from_secs(6)));
    assert_eq!(began.elapsed(), Duration::ZERO);
    assert!(
        limiter
            .acquire("a", Acquire::within(Duration::from_secs(6)))
            .await
            .unwrap()
            .is_allowed()
    );
}

#[tokio::test(start_paused = true)]
async fn it_gives_up_at_once_if_the_units_can_never_fit() {
    let limiter = limiter(Algorithm::Gcra, "10/minute");
    let began = Instant::now();
    let decision = limiter
        .acquire("a", Acquire::within(Duration::MAX).cost(units(11)))
        .await
        .unwrap();
    assert!(decision.is_never());
    assert_eq!(began.elapsed(), Duration::ZERO);
    assert_eq!(limiter.peek("a").await.unwrap().remaining(), 10);
}

#[tokio::test(start_paused = true)]
async fn a_waiter_that_is_dropped_has_charged_nothing() {
    let limiter = limiter(Algorithm::TokenBucket, "10/minute");
    assert!(limiter.hit_n("a", 10).await.unwrap().is_allowed());
    let acquire = Acquire::within(Duration::from_secs(60)).cost(units(5));
    let cancelled = timeout(Duration::from_secs(20), limiter.acquire("a", acquire)).await;
    assert!(cancelled.is_err());
    tokio::time::sleep(Duration::from_secs(40)).await;
    assert_eq!(limiter.peek("a").await.unwrap().remaining(), 10);
}

#[tokio::test(start_paused = true)]
async fn jitter_adds_up_to_its_most_and_never_passes_the_maximum_wait() {
    let jitter = Duration::from_millis(500);
    let mut waits = Vec::new();
    for round in 0..50 {
        let limiter = limiter(Algorithm::TokenBucket, "10/minute");
        assert!(limiter.hit_n("a", 10).await.unwrap().is_allowed());
        let began = Instant::now();
        let acquire = Acquire::within(Duration::from_millis(6_300)).jitter(jitter);
        assert!(
            limiter.acquire("a", acquire).await.unwrap().is_allowed(),
            "round {round}"
        );
        waits.push(began.elapsed());
    }
    assert!(
        waits.iter().all(|wait| *wait >= Duration::from_secs(6)),
        "{waits:?}"
    );
    assert!(
        waits
            .iter()
            .all(|wait| *wait <= Duration::from_millis(6_301)),
        "{waits:?}"
    );
    assert!(
        waits.iter().any(|wait| *wait != waits[0]),
        "fifty equal jitters"
    );
}

#[tokio::test(start_paused = true)]
async fn many_waiters_are_all_admitted_and_never_more_than_the_rate() {
    let limiter = limiter(Algorithm::TokenBucket, "5/second");
    let began = Instant::now();
    let waiters = (0..40).map(|_| {
        let limiter = limiter.clone();
        tokio::spawn(async move {
            let acquire = Acquire::within(Duration::from_secs(60));
            assert!(limiter.acquire("a", acquire).await.unwrap().is_allowed());
            Instant::now()
        })
    });
    let waiters: Vec<_> = waiters.collect();
    let mut admitted = Vec::new();
    for waiter in waiters {
        admitted.push(waiter.await.unwrap() - began);
    }
    admitted.sort();
    // Five at once, then one every 200 ms.
    for (index, after) in admitted.iter().enumerate() {
        let earliest = Duration::from_millis(200) * u32::try_from(index.saturating_sub(4)).unwrap();
        assert!(*after >= earliest, "{admitted:?}");
    }
    assert_eq!(admitted.last(), Some(&Duration::from_secs(7)));
}

#[tokio::test(start_paused = true)]
async fn a_closed_limiter_waits_for_its_store_to_come_back() {
    let failing = FailingStore::new(ErrorKind::Unavailable, 2, store());
    let limiter = Limiter::new(failing, Quota::per_minute(10)).on_failure(FailureMode::Closed);
    let began = Instant::now();
    let decision = limiter
        .acquire("a", Acquire::within(Duration::from_secs(10)))
        .await
        .unwrap();
    assert!(decision.is_allowed() && !decision.is_degraded());
    assert_eq!(began.elapsed(), 2 * FailureMode::RETRY_AFTER);
}

#[tokio::test(start_paused = true)]
async fn a_caller_who_names_nobody_does_not_wait() {
    let limiter = limiter(Algorithm::TokenBucket, "10/minute");
    let error = limiter
        .acquire("", Acquire::within(SECOND))
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
}

#[tokio::test(start_paused = true)]
async fn nobody_waits_for_a_shadow_and_it_is_charged_once() {
    let quota = |text: &str| text.parse().expect("legal");
    let enforced = Policy::new("enforced", Algorithm::FixedWindow, quota("2/second")).unwrap();
    let shadow = Policy::new("shadow", Algorithm::FixedWindow, quota("3/hour")).unwrap();
    let policies = Policies::new([enforced, shadow.shadow()]).unwrap();
    let limiter = Limiter::new(store(), policies);
    assert!(limiter.hit_n("a", 2).await.unwrap().is_allowed());
    let began = Instant::now();
    for (wait, shadow_left, denials) in [(1, 0, 0), (1, 0, 1), (2, 0, 1)] {
        let acquire = Acquire::within(SECOND);
        let decision = limiter.acquire("a", acquire).await.unwrap();
        assert!(decision.is_allowed());
        assert_eq!(began.elapsed(), SECOND * wait);
        let shadow = decision.each().last().unwrap();
        assert_eq!(shadow.remaining(), shadow_left);
        assert_eq!(decision.shadow_violated().count(), denials);
    }
}
