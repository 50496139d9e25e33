//! A policy that has a failure mode of its own keeps it, also where there is a stand-in.

use futures::executor::block_on;
use tollgate_core::{Algorithm, FailureMode, Limiter, Policies, Policy, Quota, Source};

use crate::stores::{Health, Standing, setting};

fn policy(name: &str, mode: Option<FailureMode>) -> Policy {
    let policy = Policy::new(name, Algorithm::FixedWindow, Quota::per_minute(8)).unwrap();
    match mode {
        Some(mode) => policy.on_failure(mode),
        None => policy,
    }
}

/// A limiter whose store is away.
fn limiter(modes: [Option<FailureMode>; 2]) -> Limiter<Standing> {
    let (_, store, standing) = setting();
    store.set(Health::Away);
    let policies = Policies::new([policy("one", modes[0]), policy("two", modes[1])]).unwrap();
    Limiter::new(standing, policies)
}

/// Who answered, whether it was admitted, and what remains of each policy.
fn hit(limiter: &Limiter<Standing>) -> (Source, bool, Vec<u64>) {
    block_on(async {
        let decision = limiter.hit("someone").await.unwrap();
        let remaining = decision.each().map(|one| one.remaining()).collect();
        (decision.source(), decision.is_allowed(), remaining)
    })
}

#[test]
fn open_beside_nothing_is_admitted_unjudged_and_the_other_is_judged() {
    let limiter = limiter([Some(FailureMode::Open), None]);
    assert_eq!(hit(&limiter), (Source::Fallback, true, vec![8, 1]));
    assert_eq!(hit(&limiter), (Source::Fallback, true, vec![8, 0]));
    assert_eq!(hit(&limiter), (Source::Fallback, false, vec![8, 0]));
}

#[test]
fn open_alone_is_left_to_the_limiter() {
    let limiter = limiter([Some(FailureMode::Open), Some(FailureMode::Open)]);
    for _ in 0..20 {
        assert_eq!(hit(&limiter), (Source::FailureMode, true, vec![8, 8]));
    }
    assert_eq!(limiter.store().debts(), 0);
}

#[test]
fn closed_denies_whatever_stands_beside_it() {
    for other in [None, Some(FailureMode::Open), Some(FailureMode::Fallback)] {
        let limiter = limiter([other, Some(FailureMode::Closed)]);
        let (source, allowed, _) = hit(&limiter);
        assert_eq!((source, allowed), (Source::FailureMode, false), "{other:?}");
        assert_eq!(limiter.store().debts(), 0);
    }
}

#[test]
fn the_limiters_mode_holds_for_policies_that_name_none() {
    let closed = limiter([None, Some(FailureMode::Fallback)]).on_failure(FailureMode::Closed);
    let (source, allowed, _) = hit(&closed);
    assert_eq!((source, allowed), (Source::FailureMode, false));
    let open = limiter([None, Some(FailureMode::Fallback)]).on_failure(FailureMode::Open);
    assert_eq!(hit(&open), (Source::Fallback, true, vec![8, 1]));
}
