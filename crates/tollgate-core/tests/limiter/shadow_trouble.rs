//! A store that fails where policies are in shadow mode: no hit suffers for a shadow.

use std::sync::{Arc, Mutex};

use tollgate_core::{
    Algorithm, Batch, Capabilities, Error, ErrorKind, FailureMode, InProcessStore, Key, Limiter,
    Op, Policies, Policy, Quota, Result, Source, Store, Verdicts,
};

use crate::stores::{FailingStore, MapStore, MiscountingStore};

const ALWAYS: u32 = u32::MAX;

/// Keeps a list of what it was asked, fails where one policy is asked about, and lets a stand-in answer for another.
#[derive(Debug)]
struct PickyStore {
    inner: Arc<MapStore>,
    fails: Mutex<Option<(&'static str, ErrorKind)>>,
    stood_in_for: Option<&'static str>,
    asked: Mutex<Vec<String>>,
}

impl PickyStore {
    fn new() -> Self {
        Self {
            inner: MapStore::shared(),
            fails: Mutex::default(),
            stood_in_for: None,
            asked: Mutex::default(),
        }
    }

    fn fail_on(&self, policy: &'static str, kind: ErrorKind) {
        *self.fails.lock().expect("no test panics inside") = Some((policy, kind));
    }

    /// The calls since this was last called: `hit ten, hit five`.
    fn asked(&self) -> Vec<String> {
        std::mem::take(&mut *self.asked.lock().expect("no test panics inside"))
    }
}

fn names(batch: &Batch<'_>) -> String {
    let checks = batch.checks().iter().map(|check| {
        let verb = match check.op {
            Op::Hit(_) => "hit",
            Op::Peek(_) => "peek",
            Op::Settle(_) => "settle",
        };
        format!("{verb} {}", check.policy.name())
    });
    checks.collect::<Vec<_>>().join(", ")
}

impl InProcessStore for PickyStore {
    fn judge(&self, batch: &Batch<'_>) -> Result<Verdicts> {
        let asked = &mut *self.asked.lock().expect("no test panics inside");
        asked.push(names(batch));
        let is_about = |name: &str| {
            let mut checks = batch.checks().iter();
            checks.any(|check| check.policy.name() == name)
        };
        let fails = *self.fails.lock().expect("no test panics inside");
        if let Some((name, kind)) = fails
            && is_about(name)
        {
            return Err(Error::new(kind, "told to fail"));
        }
        let verdicts = self.inner.judge(batch)?;
        Ok(match self.stood_in_for {
            Some(name) if is_about(name) => verdicts.with_source(Source::Fallback),
            _ => verdicts,
        })
    }
}

impl Store for PickyStore {
    async fn apply<'a>(&'a self, batch: Batch<'a>) -> Result<Verdicts> {
        self.judge(&batch)
    }

    async fn reset<'a>(&'a self, keys: &'a [Key<'a>]) -> Result<u64> {
        self.inner.reset(keys).await
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::ALL
    }
}

fn policy(name: &str, limit: u32) -> Policy {
    Policy::new(name, Algorithm::FixedWindow, Quota::per_minute(limit)).expect("legal")
}

fn policies() -> Policies {
    let policies = [
        policy("three", 3).shadow(),
        policy("ten", 10),
        policy("five", 5),
        policy("four", 4).shadow(),
    ];
    Policies::new(policies).expect("legal")
}

fn picky() -> Limiter<PickyStore> {
    Limiter::new(PickyStore::new(), policies())
}

#[tokio::test]
async fn the_enforced_share_a_call_and_each_shadow_has_its_own() {
    let limiter = picky();
    let store = limiter.store();
    assert!(limiter.hit_n("a", 4).await.unwrap().is_allowed());
    assert_eq!(
        store.asked(),
        ["hit ten, hit five", "hit three", "hit four"]
    );
    assert!(!limiter.hit_n_now("a", 2).unwrap().is_allowed());
    let denied = ["hit ten, hit five", "peek three", "peek four"];
    assert_eq!(store.asked(), denied);
    assert!(limiter.peek("a").await.unwrap().is_allowed());
    let peeked = ["peek ten, peek five", "peek three", "peek four"];
    assert_eq!(store.asked(), peeked);
    let receipt = limiter.reserve("a", 1).await.unwrap().into_receipt();
    store.asked();
    limiter.settle(receipt.unwrap(), 0).await.unwrap();
    assert_eq!(store.asked(), ["settle ten, settle five", "settle three"]);
}

#[tokio::test]
async fn a_shadow_that_fails_is_assumed_to_admit_and_the_hit_is_judged_all_the_same() {
    for kind in [
        ErrorKind::Unavailable,
        ErrorKind::Corrupt,
        ErrorKind::InvalidInput,
        ErrorKind::Unsupported,
    ] {
        for mode in [
            FailureMode::Open,
            FailureMode::Closed,
            FailureMode::Fallback,
        ] {
            let limiter = picky().on_failure(mode);
            limiter.store().fail_on("three", kind);
            for decision in [limiter.hit("a").await, limiter.hit_now("a")] {
                let decision = decision.unwrap();
                assert!(decision.is_allowed() && !decision.is_degraded());
                assert_eq!(decision.source(), Source::Store);
                assert!(decision.error().is_none());
                assert_eq!(decision.shadow_violated().count(), 0);
                let failed = decision.shadow_failed();
                let failed: Vec<_> = failed
                    .map(|(policy, error)| (policy.name(), error.kind()))
                    .collect();
                assert_eq!(failed, [("three", kind)]);
                let shadow = decision.each().next().unwrap();
                assert!(shadow.is_allowed() && shadow.reset_at().is_none());
            }
            // The others went on counting.
            let left: Vec<_> = limiter
                .peek("a")
                .await
                .unwrap()
                .each()
                .map(|decision| decision.remaining())
                .collect();
            assert_eq!(left, [3, 8, 3, 2]);
        }
    }
}

#[tokio::test]
async fn a_report_names_the_shadows_that_nobody_judged() {
    let limiter = picky();
    limiter.store().fail_on("four", ErrorKind::Timeout);
    let report = limiter.hit_n("a", 5).await.unwrap().to_report();
    assert_eq!(
        (report.shadow_violated.len(), report.shadow_failed.len()),
        (1, 1)
    );
    let expected =
        "allowed, 0 of 5 left (five); in shadow, denied by three; in shadow, not judged by four";
    assert_eq!(report.to_string(), expected);
}

#[tokio::test]
async fn where_the_enforced_call_fails_no_shadow_is_asked() {
    for (mode, admitted) in [(FailureMode::Open, true), (FailureMode::Closed, false)] {
        let store = FailingStore::new(ErrorKind::Timeout, 2, MapStore::shared());
        let limiter = Limiter::new(store, policies()).on_failure(mode);
        for decision in [limiter.hit("a").await, limiter.hit_now("a")] {
            let decision = decision.unwrap();
            assert_eq!(decision.is_allowed(), admitted);
            assert!(decision.is_degraded());
            assert_eq!(decision.source(), Source::FailureMode);
            let each = decision.each().map(|decision| decision.is_allowed());
            let each: Vec<_> = each.collect();
            assert_eq!(each, [true, admitted, admitted, true]);
            assert_eq!(decision.shadow_violated().count(), 0);
            assert_eq!(decision.shadow_failed().count(), 0);
        }
        assert_eq!(limiter.store().calls(), 2);
    }
}

#[tokio::test]
async fn the_failure_mode_of_a_shadow_decides_nothing() {
    for mode in [FailureMode::Closed, FailureMode::Fallback] {
        let policies = [
            policy("three", 3).shadow().on_failure(mode),
            policy("ten", 10),
        ];
        let store = FailingStore::new(ErrorKind::Timeout, ALWAYS, MapStore::shared());
        let limiter = Limiter::new(store, Policies::new(policies).unwrap());
        assert!(limiter.hit("a").await.unwrap().is_allowed());
        let only = policy("three", 3).shadow().on_failure(mode);
        let store = FailingStore::new(ErrorKind::Timeout, ALWAYS, MapStore::shared());
        assert!(
            Limiter::new(store, only)
                .hit("a")
                .await
                .unwrap()
                .is_allowed()
        );
    }
}

#[tokio::test]
async fn a_limiter_of_shadows_only_admits_where_its_store_fails_and_is_not_degraded() {
    let store = FailingStore::new(ErrorKind::Timeout, ALWAYS, MapStore::shared());
    let limiter = Limiter::new(store, policy("three", 3).shadow()).on_failure(FailureMode::Closed);
    let decision = limiter.hit("a").await.unwrap();
    assert!(decision.is_allowed() && !decision.is_degraded());
    assert_eq!((decision.source(), decision.at()), (Source::Shadow, None));
    assert_eq!(decision.shadow_failed().count(), 1);
    assert!(
        limiter
            .reserve("a", 1)
            .await
            .unwrap()
            .into_receipt()
            .is_none()
    );
}

#[tokio::test]
async fn an_answer_of_the_wrong_length_about_a_shadow_is_trouble_with_the_shadow() {
    let limiter = Limiter::new(
        MiscountingStore(MapStore::shared()),
        policy("three", 3).shadow(),
    );
    let decision = limiter.hit("a").await.unwrap();
    assert!(decision.is_allowed());
    let (_, error) = decision.shadow_failed().next().unwrap();
    assert_eq!(error.kind(), ErrorKind::Other);
    assert!(error.may_have_charged());
}

#[tokio::test]
async fn a_shadow_that_cannot_be_settled_fails_no_settlement() {
    let limiter = picky();
    let receipt = limiter.reserve("a", 3).await.unwrap().into_receipt();
    limiter.store().fail_on("three", ErrorKind::Unavailable);
    let report = limiter.settle(receipt.unwrap(), 1).await.unwrap();
    assert_eq!((report.policy.as_str(), report.remaining), ("five", 4));
    assert_eq!(report.shadow_failed, ["three"]);
}

#[tokio::test]
async fn a_settlement_that_fails_leaves_the_shadows_as_they_were() {
    let limiter = picky();
    let receipt = limiter.reserve("a", 3).await.unwrap().into_receipt();
    limiter.store().fail_on("ten", ErrorKind::Unavailable);
    limiter.store().asked();
    let error = limiter.settle(receipt.unwrap(), 1).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert_eq!(limiter.store().asked(), ["settle ten, settle five"]);
}

/// A settlement goes to whoever answers then, which may be another than the one that was charged.
#[tokio::test]
async fn what_a_stand_in_charged_is_not_settled_with_what_the_store_charged() {
    let store = PickyStore {
        stood_in_for: Some("three"),
        ..PickyStore::new()
    };
    let limiter = Limiter::new(store, policies());
    let receipt = limiter.reserve("a", 3).await.unwrap().into_receipt();
    let receipt = receipt.unwrap();
    assert_eq!(receipt.source(), Source::Store);
    limiter.store().asked();
    limiter.settle(receipt, 1).await.unwrap();
    assert_eq!(
        limiter.store().asked(),
        ["settle ten, settle five", "settle four"]
    );
}
