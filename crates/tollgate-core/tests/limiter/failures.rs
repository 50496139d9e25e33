//! What a limiter answers when its store cannot.

use std::error::Error as _;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tollgate_core::{
    Algorithm, Batch, Capabilities, Error, ErrorKind, FailureMode, Key, Limiter, Policies, Policy,
    Quota, Result, Source, Store, Verdicts,
};

use crate::stores::{FailingStore, MapStore, MiscountingStore};

const STORE_FAULTS: [ErrorKind; 7] = [
    ErrorKind::Unavailable,
    ErrorKind::Timeout,
    ErrorKind::Overloaded,
    ErrorKind::Conflict,
    ErrorKind::Refused,
    ErrorKind::Corrupt,
    ErrorKind::Other,
];
const CALLERS_FAULTS: [ErrorKind; 2] = [ErrorKind::InvalidInput, ErrorKind::Unsupported];
const ALWAYS: u32 = u32::MAX;

type Failing = FailingStore<Arc<MapStore>>;

fn failing(kind: ErrorKind) -> Failing {
    FailingStore::new(kind, ALWAYS, MapStore::shared())
}

#[tokio::test]
async fn an_open_limiter_admits_when_its_store_fails_and_says_so() {
    for kind in STORE_FAULTS {
        let limiter = Limiter::new(failing(kind), Quota::per_second(5));
        let decision = limiter.hit("a").await.unwrap();
        assert!(decision.is_allowed(), "{kind:?}");
        assert!(decision.is_degraded());
        assert_eq!(decision.source(), Source::FailureMode);
        assert_eq!(decision.retry_after(), Some(Duration::ZERO));
        assert_eq!((decision.limit(), decision.remaining()), (5, 5));
        assert_eq!((decision.at(), decision.reset_at()), (None, None));
        assert_eq!(decision.reset_after(), Duration::ZERO);
        let error = decision.error().unwrap();
        assert_eq!((error.kind(), error.store()), (kind, "failing"));
        assert_eq!(error.source().unwrap().to_string(), "the cause");
    }
}

#[tokio::test]
async fn a_closed_limiter_denies_when_its_store_fails_and_names_a_second() {
    for kind in STORE_FAULTS {
        let limiter =
            Limiter::new(failing(kind), Quota::per_second(5)).on_failure(FailureMode::Closed);
        let decision = limiter.hit("a").await.unwrap();
        assert!(!decision.is_allowed(), "{kind:?}");
        assert!(decision.is_degraded() && !decision.is_never());
        assert_eq!(decision.retry_after(), Some(FailureMode::RETRY_AFTER));
        assert_eq!(decision.remaining(), 0);
        assert_eq!(decision.violated().count(), 1);
    }
}

#[tokio::test]
async fn a_fault_of_the_caller_stays_an_error_in_every_mode() {
    for kind in CALLERS_FAULTS {
        for mode in [
            FailureMode::Open,
            FailureMode::Closed,
            FailureMode::Fallback,
        ] {
            let limiter = Limiter::new(failing(kind), Quota::per_second(5)).on_failure(mode);
            assert_eq!(limiter.hit("a").await.unwrap_err().kind(), kind);
            assert_eq!(limiter.peek("a").await.unwrap_err().kind(), kind);
            assert_eq!(limiter.reserve("a", 1).await.unwrap_err().kind(), kind);
            assert_eq!(limiter.hit_now("a").unwrap_err().kind(), kind);
        }
    }
}

#[tokio::test]
async fn a_peek_and_a_call_without_a_future_follow_the_mode_as_well() {
    let limiter = Limiter::new(failing(ErrorKind::Timeout), Quota::per_second(5));
    assert!(limiter.peek("a").await.unwrap().is_degraded());
    assert!(limiter.hit_now("a").unwrap().is_degraded());
    assert!(limiter.peek_now("a").unwrap().is_degraded());
}

#[tokio::test]
async fn a_policys_own_mode_goes_before_the_limiters() {
    let named = |name: &str| Policy::new(name, Algorithm::Gcra, Quota::per_second(5)).unwrap();
    let closed = named("closed").on_failure(FailureMode::Closed);
    let limiter = Limiter::new(failing(ErrorKind::Timeout), closed.clone());
    assert!(!limiter.hit("a").await.unwrap().is_allowed());
    let open = named("open").on_failure(FailureMode::Open);
    let limiter = Limiter::new(failing(ErrorKind::Timeout), open).on_failure(FailureMode::Closed);
    assert!(limiter.hit("a").await.unwrap().is_allowed());

    // One closed policy is enough to deny, and is the one named.
    let policies = Policies::new([named("inherits"), closed]).unwrap();
    let limiter = Limiter::new(failing(ErrorKind::Timeout), policies);
    let decision = limiter.hit("a").await.unwrap();
    assert!(!decision.is_allowed());
    assert_eq!(decision.binding().policy().name(), "closed");
    let modes: Vec<_> = decision
        .each()
        .map(|decision| decision.is_allowed())
        .collect();
    assert_eq!(modes, [true, false]);
    assert_eq!(decision.to_report().source, Source::FailureMode);
}

#[tokio::test]
async fn a_reset_and_a_settlement_that_did_not_happen_are_errors() {
    let working = MapStore::shared();
    let limiter = Limiter::new(
        FailingStore::new(ErrorKind::Timeout, 0, Arc::clone(&working)),
        Quota::per_second(5),
    );
    let receipt = limiter
        .reserve("a", 2)
        .await
        .unwrap()
        .into_receipt()
        .unwrap();
    let limiter = Limiter::new(
        FailingStore::new(ErrorKind::Timeout, ALWAYS, working),
        Quota::per_second(5),
    );
    assert_eq!(
        limiter.settle(receipt, 1).await.unwrap_err().kind(),
        ErrorKind::Timeout
    );
    assert_eq!(
        limiter.reset("a").await.unwrap_err().kind(),
        ErrorKind::Timeout
    );
}

#[tokio::test]
async fn a_reservation_that_nobody_judged_has_no_receipt() {
    let limiter = Limiter::new(failing(ErrorKind::Unavailable), Quota::per_second(5));
    let reservation = limiter.reserve("a", 2).await.unwrap();
    assert!(reservation.decision().is_allowed());
    assert!(reservation.into_receipt().is_none());
}

#[tokio::test]
async fn a_store_is_asked_once_and_never_again_for_one_call() {
    let limiter = Limiter::new(failing(ErrorKind::Unavailable), Quota::per_second(5));
    assert!(limiter.hit("a").await.unwrap().is_degraded());
    assert_eq!(limiter.store().calls(), 1);
}

/// The answers do not fit the question, and the store may have charged before it gave them.
#[tokio::test]
async fn an_answer_of_the_wrong_length_is_the_stores_trouble_and_may_have_charged() {
    let store = MapStore::shared();
    let limiter = Limiter::new(MiscountingStore(Arc::clone(&store)), Quota::per_second(5));
    let decision = limiter.hit("a").await.unwrap();
    let error = decision.error().unwrap();
    assert_eq!(error.kind(), ErrorKind::Other);
    assert!(error.may_have_charged());
    assert_eq!(error.to_string(), "store failed: 1 checks had 2 answers");

    let honest = Limiter::new(store, Quota::per_second(5));
    let receipt = honest
        .reserve("a", 2)
        .await
        .unwrap()
        .into_receipt()
        .unwrap();
    let error = limiter.settle(receipt, 1).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Other);
    assert!(error.may_have_charged());
}

#[test]
fn only_what_may_pass_by_itself_is_transient() {
    let transient = STORE_FAULTS
        .into_iter()
        .chain(CALLERS_FAULTS)
        .filter(|kind| kind.is_transient());
    let expected = [
        ErrorKind::Unavailable,
        ErrorKind::Timeout,
        ErrorKind::Overloaded,
        ErrorKind::Conflict,
    ];
    assert_eq!(transient.collect::<Vec<_>>(), expected);
}

#[tokio::test]
async fn the_fallback_mode_is_an_error_on_a_store_that_nothing_stands_in_for() {
    let limiter = Limiter::new(failing(ErrorKind::Timeout), Quota::per_second(5))
        .on_failure(FailureMode::Fallback);
    let error = limiter.hit("a").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    let cause = error.source().unwrap().to_string();
    assert_eq!(cause, "failing: store timed out: told to fail");

    let policy = Policy::from(Quota::per_second(5)).on_failure(FailureMode::Fallback);
    let limiter = Limiter::new(failing(ErrorKind::Timeout), policy);
    assert!(limiter.hit("a").await.is_err());
}

#[tokio::test]
async fn the_fallback_mode_denies_when_the_stand_in_fails_as_well() {
    let store = failing(ErrorKind::Timeout).with_a_stand_in();
    let limiter = Limiter::new(store, Quota::per_second(5)).on_failure(FailureMode::Fallback);
    let decision = limiter.hit("a").await.unwrap();
    assert!(!decision.is_allowed());
    assert_eq!(decision.source(), Source::FailureMode);
    assert_eq!(decision.remaining(), 0);
    assert_eq!(decision.retry_after(), Some(FailureMode::RETRY_AFTER));
}

/// Remembers, for each check it was asked, what was to be answered should it fail.
#[derive(Debug, Default)]
struct Listener(Mutex<Vec<Option<FailureMode>>>);

impl Store for Listener {
    async fn apply<'a>(&'a self, batch: Batch<'a>) -> Result<Verdicts> {
        let modes = batch.checks().iter().map(|check| batch.failure_mode(check));
        self.0.lock().expect("no test panics inside").extend(modes);
        Err(Error::new(ErrorKind::Unavailable, "only listens"))
    }

    async fn reset<'a>(&'a self, _: &'a [Key<'a>]) -> Result<u64> {
        Ok(0)
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::LEAST.with_fallback(true)
    }
}

#[tokio::test]
async fn a_wrapper_learns_the_mode_of_each_check() {
    let named = |name: &str| Policy::new(name, Algorithm::Gcra, Quota::per_second(5)).unwrap();
    let policies =
        Policies::new([named("own").on_failure(FailureMode::Closed), named("none")]).unwrap();
    let heard = async |limiter: Limiter<Listener>| {
        let _ = limiter.hit("a").await.unwrap();
        std::mem::take(&mut *limiter.store().0.lock().unwrap())
    };
    let unsaid = heard(Limiter::new(Listener::default(), policies.clone())).await;
    assert_eq!(unsaid, [Some(FailureMode::Closed), None]);
    let limiter = Limiter::new(Listener::default(), policies).on_failure(FailureMode::Fallback);
    let said = heard(limiter).await;
    assert_eq!(
        said,
        [Some(FailureMode::Closed), Some(FailureMode::Fallback)]
    );
}
