//! A limiter with one policy never touches the heap: not for a hit, a peek, an answer's numbers or a long subject.
//!
//! The store answers from constants, so whatever is allocated is core's own. Allocations are counted per thread.

use std::future::Future;
use std::hint::black_box;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use allocation_counter::measure;
use tollgate_core::{
    Algorithm, Batch, Capabilities, Clock, Decision, Error, InProcessStore, Key, Limiter, Policies,
    Policy, Quota, Result, Store, SystemClock, Timestamp, Verdict, Verdicts,
};

const NOW: u64 = 1_700_000_000_000_000;

/// Admits with an empty bucket, whoever asks.
#[derive(Clone, Debug)]
struct ConstantStore;

impl InProcessStore for ConstantStore {
    fn judge(&self, batch: &Batch<'_>) -> Result<Verdicts> {
        let at = Timestamp::saturating_from_micros(NOW);
        match batch.checks() {
            [_] => Ok(Verdicts::one(at, Verdict::bucket(true, 0))),
            checks => Ok(Verdicts::many(
                at,
                checks.iter().map(|_| Verdict::bucket(true, 0)).collect(),
            )),
        }
    }
}

impl Store for ConstantStore {
    async fn apply<'a>(&'a self, batch: Batch<'a>) -> Result<Verdicts> {
        self.judge(&batch)
    }

    async fn reset<'a>(&'a self, _keys: &'a [Key<'a>]) -> Result<u64> {
        Ok(0)
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::ALL
    }
}

/// Polls a future that is ready at once.
fn ready<T>(future: impl Future<Output = T>) -> T {
    let mut context = Context::from_waker(Waker::noop());
    match pin!(future).poll(&mut context) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("the constant store answers at once"),
    }
}

fn look_at_everything(decision: &Decision<'_>) {
    black_box((
        decision.is_allowed(),
        decision.limit(),
        decision.remaining(),
    ));
    black_box((
        decision.retry_after(),
        decision.reset_after(),
        decision.reset_at(),
    ));
    black_box((decision.delay(), decision.at(), decision.source()));
    black_box((
        decision.violated().count(),
        decision.binding().policy().name(),
    ));
}

fn allocations(work: impl FnOnce()) -> u64 {
    measure(work).count_total
}

fn limiter(algorithm: Algorithm) -> Limiter<ConstantStore> {
    let policy = Policy::new("one", algorithm, Quota::per_second(5)).expect("legal");
    Limiter::new(ConstantStore, policy)
}

#[test]
fn a_hit_under_one_policy_allocates_nothing() {
    for algorithm in [
        Algorithm::TokenBucket,
        Algorithm::LeakyBucket,
        Algorithm::Gcra,
    ] {
        let limiter = limiter(algorithm);
        let count = allocations(|| {
            look_at_everything(&limiter.hit_now("user:42").expect("answered"));
            look_at_everything(&limiter.hit_n_now("user:42", 3).expect("answered"));
            look_at_everything(&limiter.peek_now("user:42").expect("answered"));
        });
        assert_eq!(count, 0, "{algorithm} without a future");
        let count = allocations(|| {
            look_at_everything(&ready(limiter.hit("user:42")).expect("answered"));
            look_at_everything(&ready(limiter.hit_n("user:42", 3)).expect("answered"));
            look_at_everything(&ready(limiter.peek("user:42")).expect("answered"));
        });
        assert_eq!(count, 0, "{algorithm} polled");
    }
}

#[test]
fn a_subject_that_is_hashed_allocates_nothing_either() {
    let limiter = limiter(Algorithm::TokenBucket);
    let long = "x".repeat(10_000);
    assert_eq!(
        allocations(|| look_at_everything(&limiter.hit_now(&long).expect("answered"))),
        0
    );
}

#[test]
fn building_a_limiter_for_a_tier_on_the_fly_allocates_nothing() {
    let policies = Policies::from(Quota::per_second(5));
    let count = allocations(|| {
        let limiter = Limiter::new(ConstantStore, policies.clone());
        look_at_everything(&limiter.hit_now("user:42").expect("answered"));
    });
    assert_eq!(count, 0);
}

#[test]
fn a_reset_and_a_clock_of_ones_own_allocate_nothing_per_call() {
    let limiter = limiter(Algorithm::TokenBucket).clock(SystemClock);
    let count = allocations(|| {
        look_at_everything(&limiter.hit_now("user:42").expect("answered"));
        assert!(!ready(limiter.reset("user:42")).expect("answered"));
    });
    assert_eq!(count, 0);
}

/// The counter does count: several policies need a list, and an error is boxed.
#[test]
fn what_does_allocate_is_seen_by_the_counter() {
    let two = ["one", "two"]
        .map(|name| Policy::new(name, Algorithm::Gcra, Quota::per_second(5)).expect("legal"));
    let limiter = Limiter::new(ConstantStore, Policies::new(two).expect("legal"));
    assert!(allocations(|| look_at_everything(&limiter.hit_now("user:42").expect("answered"))) > 0);
    let count = allocations(|| {
        let refused: Error = limiter.hit_now("").expect_err("nobody is named");
        black_box(refused);
    });
    assert!(count > 0);
    black_box(SystemClock.now());
}
