//! Charging an estimate first, and correcting it when the real cost is known.

use std::sync::Arc;
use std::time::Duration;

use tollgate_core::{Algorithm, Limiter, Policies, Policy, Quota, Source};

use crate::stores::{MapStore, StandIn, start};

fn limiter(algorithm: Algorithm) -> Limiter<Arc<MapStore>> {
    let policy = Policy::new("work", algorithm, Quota::per_minute(10)).expect("legal");
    Limiter::new(MapStore::shared(), policy)
}

#[tokio::test]
async fn what_was_not_used_is_given_back() {
    for algorithm in Algorithm::ALL {
        let limiter = limiter(algorithm);
        let reservation = limiter.reserve("a", 6).await.unwrap();
        assert_eq!(reservation.decision().remaining(), 4);
        let receipt = reservation.into_receipt().unwrap();
        assert_eq!(
            (receipt.charged().get(), receipt.charged_at()),
            (6, start())
        );
        assert!(!limiter.hit_n("a", 6).await.unwrap().is_allowed());
        let report = limiter.settle(receipt, 2).await.unwrap();
        assert_eq!((report.allowed, report.remaining), (true, 8), "{algorithm}");
        assert!(limiter.hit_n("a", 6).await.unwrap().is_allowed());
    }
}

#[tokio::test]
async fn what_was_used_on_top_is_charged_past_the_limit() {
    for algorithm in Algorithm::ALL {
        let limiter = limiter(algorithm);
        let receipt = limiter
            .reserve("a", 4)
            .await
            .unwrap()
            .into_receipt()
            .unwrap();
        let report = limiter.settle(receipt, 19).await.unwrap();
        assert_eq!(report.remaining, 0, "{algorithm}");
        let denied = limiter.hit("a").await.unwrap();
        assert!(!denied.is_allowed());

        // The debt is paid by waiting, and then there is room to the microsecond.
        let wait = denied.retry_after().unwrap();
        limiter
            .store()
            .clock
            .advance(wait - Duration::from_micros(1));
        assert!(!limiter.hit("a").await.unwrap().is_allowed(), "{algorithm}");
        limiter.store().clock.advance(Duration::from_micros(1));
        assert!(limiter.hit("a").await.unwrap().is_allowed(), "{algorithm}");
    }
}

#[tokio::test]
async fn a_receipt_that_is_dropped_leaves_the_charge_in_place() {
    let limiter = limiter(Algorithm::SlidingLog);
    drop(limiter.reserve("a", 6).await.unwrap().into_receipt());
    assert_eq!(limiter.peek("a").await.unwrap().remaining(), 4);
}

#[tokio::test]
async fn a_denied_reservation_has_no_receipt() {
    let limiter = limiter(Algorithm::Gcra);
    let reservation = limiter.reserve("a", 11).await.unwrap();
    assert!(reservation.decision().is_never());
    assert!(reservation.into_receipt().is_none());
}

#[tokio::test]
async fn a_receipt_settles_every_policy_it_was_charged_under() {
    let policies =
        Policies::new(Algorithm::ALL.map(|algorithm| {
            Policy::new(algorithm.name(), algorithm, Quota::per_minute(10)).unwrap()
        }));
    let limiter = Limiter::new(MapStore::shared(), policies.unwrap());
    let receipt = limiter
        .reserve("a", 6)
        .await
        .unwrap()
        .into_receipt()
        .unwrap();
    limiter.settle(receipt, 1).await.unwrap();
    let peeked = limiter.peek("a").await.unwrap();
    assert!(peeked.each().all(|decision| decision.remaining() == 9));
}

#[tokio::test]
async fn a_receipt_remembers_scope_and_subject_by_itself() {
    let limiter = limiter(Algorithm::FixedWindow);
    let scoped = limiter.clone().scope("uploads");
    let receipt = scoped
        .reserve("a", 6)
        .await
        .unwrap()
        .into_receipt()
        .unwrap();
    // Settled by a limiter of another scope on the same store.
    limiter.settle(receipt, 0).await.unwrap();
    assert_eq!(scoped.peek("a").await.unwrap().remaining(), 10);
    assert_eq!(limiter.peek("a").await.unwrap().remaining(), 10);
}

#[tokio::test]
async fn a_bucket_gives_back_only_what_has_not_drained() {
    let limiter = limiter(Algorithm::TokenBucket);
    let receipt = limiter
        .reserve("a", 10)
        .await
        .unwrap()
        .into_receipt()
        .unwrap();
    limiter.store().clock.advance(Duration::from_secs(60));
    assert!(limiter.hit_n("a", 10).await.unwrap().is_allowed());
    let report = limiter.settle(receipt, 0).await.unwrap();
    assert_eq!(report.remaining, 0);
}

#[tokio::test]
async fn a_receipt_tells_who_charged_it() {
    let store = MapStore::shared();
    let limiter = Limiter::new(Arc::clone(&store), Quota::per_minute(10));
    let receipt = limiter.reserve("a", 2).await.unwrap().into_receipt();
    assert_eq!(receipt.unwrap().source(), Source::Store);
    let limiter = Limiter::new(StandIn(store), Quota::per_minute(10));
    let receipt = limiter.reserve("a", 2).await.unwrap().into_receipt();
    assert_eq!(receipt.unwrap().source(), Source::Fallback);
}
