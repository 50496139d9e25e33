//! Asking without a future, and under other policies.

use std::sync::Arc;

use tollgate_core::{
    Algorithm, Batch, Capabilities, Cost, ErrorKind, FailureMode, InProcessStore, Key, Limiter,
    ManualClock, Policies, Policy, Quota, Result, Store, Verdicts,
};

use crate::stores::{FailingStore, MapStore, start};

/// A store in the process that says so.
#[derive(Clone, Debug)]
struct AtOnce(Arc<MapStore>);

impl Store for AtOnce {
    async fn apply<'a>(&'a self, batch: Batch<'a>) -> Result<Verdicts> {
        self.0.judge(&batch)
    }

    async fn reset<'a>(&'a self, keys: &'a [Key<'a>]) -> Result<u64> {
        self.0.reset(keys).await
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::ALL
    }

    fn apply_now(&self, batch: &Batch<'_>) -> Option<Result<Verdicts>> {
        Some(self.0.judge(batch))
    }
}

#[tokio::test]
async fn a_store_in_the_process_answers_at_once_and_counts_the_same() {
    let limiter = Limiter::new(AtOnce(MapStore::shared()), Quota::per_minute(3));
    let two = Cost::new(2).unwrap();
    let decision = limiter.hit_n_at_once(b"a", two).unwrap().unwrap();
    assert!(decision.is_allowed());
    assert_eq!(decision.remaining(), 1);
    assert_eq!(limiter.hit("a").await.unwrap().remaining(), 0);
    assert!(
        !limiter
            .hit_n_at_once(b"a", two)
            .unwrap()
            .unwrap()
            .is_allowed()
    );
}

#[tokio::test]
async fn several_policies_are_charged_at_once_all_or_none() {
    let quotas = ["3/minute", "1/hour"].map(|quota| quota.parse::<Quota>().unwrap());
    let policies = Policies::new([
        Policy::new("burst", Algorithm::Gcra, quotas[0]).unwrap(),
        Policy::new("hourly", Algorithm::Gcra, quotas[1]).unwrap(),
    ])
    .unwrap();
    let limiter = Limiter::new(AtOnce(MapStore::shared()), policies);
    let hit = || limiter.hit_n_at_once(b"a", Cost::ONE).unwrap().unwrap();
    assert!(hit().is_allowed());
    let denied = hit();
    assert!(!denied.is_allowed());
    let remaining: Vec<_> = denied.each().map(|each| each.remaining()).collect();
    assert_eq!(remaining, [2, 0]);
}

#[test]
fn a_store_that_needs_a_future_is_not_asked() {
    let store = MapStore::shared();
    let limiter = Limiter::new(Arc::clone(&store), Quota::per_minute(3));
    assert!(limiter.hit_n_at_once(b"a", Cost::ONE).is_none());
    assert_eq!(store.keys(), 0);
}

#[test]
fn policies_in_shadow_mode_take_a_future() {
    let shadow = Policy::from(Quota::per_minute(3)).shadow();
    let store = MapStore::shared();
    let limiter = Limiter::new(AtOnce(Arc::clone(&store)), shadow);
    assert!(limiter.hit_n_at_once(b"a", Cost::ONE).is_none());
    assert_eq!(store.keys(), 0);
}

#[test]
fn an_empty_subject_is_an_error_whatever_the_store_can_do() {
    let limiter = Limiter::new(MapStore::shared(), Quota::per_minute(3));
    let error = limiter.hit_n_at_once(b"", Cost::ONE).unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
}

#[tokio::test]
async fn other_policies_keep_the_store_the_clock_and_the_failure_mode() {
    let clock = ManualClock::new(start());
    let limiter = Limiter::new(MapStore::shared(), Quota::per_minute(1)).clock(clock.clone());
    let gold = limiter.with_policies(Policies::from(Quota::per_minute(2)).scope("gold"));
    assert!(limiter.hit("a").await.unwrap().is_allowed());
    assert!(gold.hit("a").await.unwrap().is_allowed());
    assert!(gold.hit("a").await.unwrap().is_allowed());
    clock.advance(std::time::Duration::from_secs(30));
    assert!(gold.hit("a").await.unwrap().is_allowed());
    assert_eq!(limiter.store().keys(), 2);

    let broken = Arc::new(FailingStore::new(
        ErrorKind::Unavailable,
        1,
        MapStore::shared(),
    ));
    let closed = Limiter::new(broken, Quota::per_minute(1))
        .on_failure(FailureMode::Closed)
        .with_policies(Quota::per_minute(2));
    assert!(!closed.hit("a").await.unwrap().is_allowed());
}

#[test]
fn prefix_and_scope_can_be_read_back() {
    let policies = Policies::from(Quota::per_minute(1));
    assert_eq!(policies.prefix_name(), Policies::DEFAULT_PREFIX);
    assert_eq!(policies.scope_name(), Policies::DEFAULT_SCOPE);
    let named = policies.prefix("shop").scope("search");
    assert_eq!(
        (named.prefix_name(), named.scope_name()),
        ("shop", "search")
    );
}
