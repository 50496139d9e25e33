//! Errors by kind, and the answers that a limiter makes of them.

use tollgate_core::{ErrorKind, FailureMode, Limiter, Policies};
use tollgate_layers::Instrumented;

use crate::support::{Fault, Faulty, counted, expected, policy};

const STORE_FAULTS: [(ErrorKind, &str); 7] = [
    (ErrorKind::Unavailable, "unavailable"),
    (ErrorKind::Timeout, "timeout"),
    (ErrorKind::Overloaded, "overloaded"),
    (ErrorKind::Conflict, "conflict"),
    (ErrorKind::Refused, "refused"),
    (ErrorKind::Corrupt, "corrupt"),
    (ErrorKind::Other, "other"),
];

#[test]
fn every_kind_of_error_is_counted_under_its_name() {
    for (kind, name) in STORE_FAULTS {
        let counts = counted(|| {
            let store = Faulty::new();
            store.fail(kind);
            let limiter = Limiter::new(Instrumented::new(store), policy("p", "5/minute"));
            assert!(limiter.hit_now("a").unwrap().is_allowed());
            assert!(limiter.peek_now("a").unwrap().is_allowed());
        });
        assert_eq!(
            counts,
            expected([
                ("tollgate_degraded_total{store=store,policy=p,mode=open}", 1),
                (
                    &format!("tollgate_errors_total{{store=store,kind={name}}}"),
                    2
                ),
                (
                    "tollgate_requests_total{store=store,policy=p,outcome=error}",
                    1
                ),
            ])
        );
    }
}

#[test]
fn a_mistake_of_the_caller_is_an_error_but_no_degraded_answer() {
    for (kind, name) in [
        (ErrorKind::InvalidInput, "invalid_input"),
        (ErrorKind::Unsupported, "unsupported"),
    ] {
        let counts = counted(|| {
            let store = Faulty::new();
            store.fail(kind);
            let limiter = Limiter::new(Instrumented::new(store), policy("p", "5/minute"));
            assert_eq!(limiter.hit_now("a").unwrap_err().kind(), kind);
        });
        assert_eq!(
            counts,
            expected([
                (
                    &format!("tollgate_errors_total{{store=store,kind={name}}}"),
                    1
                ),
                (
                    "tollgate_requests_total{store=store,policy=p,outcome=error}",
                    1
                ),
            ])
        );
    }
}

#[test]
fn degraded_answers_are_counted_by_the_mode_that_gave_them() {
    let counts = counted(|| {
        let store = Faulty::new();
        store.fail(ErrorKind::Timeout);
        let open = policy("open", "5/minute").on_failure(FailureMode::Open);
        let policies = Policies::new([open, policy("limiters", "5/minute")]).unwrap();
        let limiter =
            Limiter::new(Instrumented::new(store), policies).on_failure(FailureMode::Closed);
        assert!(!limiter.hit_now("a").unwrap().is_allowed());
    });
    assert_eq!(
        counts,
        expected([
            (
                "tollgate_degraded_total{store=store,policy=limiters,mode=closed}",
                1
            ),
            (
                "tollgate_degraded_total{store=store,policy=open,mode=open}",
                1
            ),
            ("tollgate_errors_total{store=store,kind=timeout}", 1),
            (
                "tollgate_requests_total{store=store,policy=limiters,outcome=error}",
                1
            ),
            (
                "tollgate_requests_total{store=store,policy=open,outcome=error}",
                1
            ),
        ])
    );
}

#[test]
fn a_stand_in_that_fails_as_well_leaves_the_answer_of_a_closed_limiter() {
    let counts = counted(|| {
        let store = Faulty::new().with_stand_in();
        store.fail(ErrorKind::Timeout);
        let limiter = Limiter::new(Instrumented::new(store), policy("p", "5/minute"))
            .on_failure(FailureMode::Fallback);
        assert!(!limiter.hit_now("a").unwrap().is_allowed());
    });
    assert_eq!(
        counts["tollgate_degraded_total{store=store,policy=p,mode=closed}"],
        1
    );
}

#[test]
fn where_nobody_stands_in_there_is_no_answer_to_count_as_degraded() {
    let counts = counted(|| {
        let store = Faulty::new();
        store.fail(ErrorKind::Timeout);
        let limiter = Limiter::new(Instrumented::new(store), policy("p", "5/minute"))
            .on_failure(FailureMode::Fallback);
        let error = limiter.hit_now("a").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
    });
    assert_eq!(
        counts,
        expected([
            ("tollgate_errors_total{store=store,kind=timeout}", 1),
            (
                "tollgate_requests_total{store=store,policy=p,outcome=error}",
                1
            ),
        ])
    );
}

#[test]
fn a_reset_that_fails_is_an_error_and_degrades_nothing() {
    let counts = counted(|| {
        let store = Faulty::new();
        store.fail(ErrorKind::Unavailable);
        let limiter = Limiter::new(Instrumented::new(store), policy("p", "5/minute"));
        futures::executor::block_on(limiter.reset("a")).unwrap_err();
    });
    assert_eq!(
        counts,
        expected([("tollgate_errors_total{store=store,kind=unavailable}", 1)])
    );
}

#[test]
fn an_answer_that_leaves_a_check_out_is_an_error_like_any_other() {
    let counts = counted(|| {
        let store = Faulty::new();
        store.set(Fault::Miscount);
        let policies = Policies::new([policy("a", "5/minute"), policy("b", "5/minute")]).unwrap();
        let limiter = Limiter::new(Instrumented::new(store), policies);
        assert!(limiter.hit_now("a").unwrap().is_degraded());
    });
    assert_eq!(
        counts,
        expected([
            ("tollgate_degraded_total{store=store,policy=a,mode=open}", 1),
            ("tollgate_degraded_total{store=store,policy=b,mode=open}", 1),
            ("tollgate_errors_total{store=store,kind=other}", 1),
            (
                "tollgate_requests_total{store=store,policy=a,outcome=error}",
                1
            ),
            (
                "tollgate_requests_total{store=store,policy=b,outcome=error}",
                1
            ),
        ])
    );
}

#[test]
fn a_shadow_that_cannot_be_asked_degrades_no_answer() {
    let counts = counted(|| {
        let store = Faulty::new();
        store.fail(ErrorKind::Timeout);
        let trial = policy("trial", "5/minute").shadow();
        let limiter = Limiter::new(Instrumented::new(store), trial);
        let decision = limiter.hit_now("a").unwrap();
        assert!(decision.is_allowed() && !decision.is_degraded());
    });
    assert_eq!(
        counts,
        expected([
            ("tollgate_errors_total{store=store,kind=timeout}", 1),
            (
                "tollgate_requests_total{store=store,policy=trial,outcome=error}",
                1
            ),
        ])
    );
}
