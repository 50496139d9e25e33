//! Conflicts without end, foreign values and wrong answers.

use std::sync::atomic::Ordering;

use tollgate_core::{Algorithm, CasStore, ErrorKind, FailureMode};

use crate::backend::MapBackend;
use crate::{limiter, policy};

#[tokio::test]
async fn it_gives_up_after_so_many_attempts_and_has_charged_nothing() {
    let limiter = limiter(MapBackend::new(), policy(Algorithm::Gcra, "5/second"))
        .on_failure(FailureMode::Closed);
    let backend = limiter.store().backend();
    backend.always_late.store(true, Ordering::SeqCst);
    let decision = limiter.hit("a").await.unwrap();
    let error = decision.error().expect("nobody judged");
    assert_eq!(error.kind(), ErrorKind::Conflict);
    assert!(error.is_transient() && !error.may_have_charged());
    assert_eq!(backend.loads(), CasStore::<MapBackend>::MAX_ATTEMPTS);
    assert!(backend.is_empty());

    backend.always_late.store(false, Ordering::SeqCst);
    assert_eq!(limiter.hit("a").await.unwrap().remaining(), 4);
    backend.always_late.store(true, Ordering::SeqCst);
    assert_eq!(
        limiter.reset("a").await.unwrap_err().kind(),
        ErrorKind::Conflict
    );
    // What writes nothing conflicts with nobody.
    assert_eq!(limiter.peek("a").await.unwrap().remaining(), 4);
}

#[tokio::test]
async fn a_value_that_is_not_its_own_is_corrupt_and_is_left_alone() {
    let limiter = limiter(MapBackend::new(), policy(Algorithm::Gcra, "5/second"));
    assert!(limiter.hit("a").await.unwrap().is_allowed());
    let backend = limiter.store().backend();
    for value in [&b"not a state"[..], b"", b"\x02b", b"\x01b\x01"] {
        backend.overwrite(value);
        let decision = limiter.hit("a").await.unwrap();
        assert_eq!(
            decision.error().expect("nobody judged").kind(),
            ErrorKind::Corrupt
        );
        assert_eq!(backend.writes().len(), 1);
    }
    // A reset repairs the key.
    assert!(limiter.reset("a").await.unwrap());
    assert_eq!(limiter.hit("a").await.unwrap().remaining(), 4);
}

#[tokio::test]
async fn a_backend_that_answers_too_few_keys_is_told_so() {
    let limiter = limiter(MapBackend::new(), policy(Algorithm::Gcra, "5/second"));
    limiter
        .store()
        .backend()
        .forgetful
        .store(true, Ordering::SeqCst);
    let decision = limiter.hit("a").await.unwrap();
    let error = decision.error().expect("nobody judged");
    assert_eq!(error.kind(), ErrorKind::Other);
    assert!(
        error.to_string().contains("1 keys and answered 0"),
        "{error}"
    );
}
