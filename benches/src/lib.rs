//! What the benchmarks share: the limiters they compare, and the traffic they see.

pub mod watched;

use std::num::NonZeroU32;

use governor::DefaultKeyedRateLimiter;
use rand::SeedableRng;
use rand::rngs::StdRng;
use rand_distr::{Distribution, Zipf};
use tollgate_memory::{Limiter, MemoryStore, Quota};

/// So much burst that every hit of a benchmark is admitted, and charged.
const PLENTY: u32 = 1_000_000_000;

/// Tollgate's token bucket over a memory store with the default clock and hasher, eviction and bound on.
#[must_use]
pub fn tollgate() -> Limiter<MemoryStore> {
    Limiter::new(MemoryStore::new(), quota())
}

/// The same with room for `capacity` keys.
///
/// # Panics
/// If there is no such store.
#[must_use]
pub fn tollgate_of(capacity: u64) -> Limiter<MemoryStore> {
    let store = MemoryStore::builder().max_capacity(capacity).build();
    Limiter::new(store.expect("the capacity is legal"), quota())
}

fn quota() -> Quota {
    Quota::per_second(1)
        .with_burst(u64::from(PLENTY))
        .expect("it is counted exactly")
}

/// governor's keyed limiter with its defaults.
///
/// # Panics
/// Never.
#[must_use]
pub fn governor() -> DefaultKeyedRateLimiter<String> {
    let plenty = NonZeroU32::new(PLENTY).expect("it is not zero");
    let quota = governor::Quota::per_second(NonZeroU32::MIN).allow_burst(plenty);
    DefaultKeyedRateLimiter::dashmap(quota)
}

/// One hit on Tollgate; returns whether it was admitted.
///
/// # Panics
/// If the subject is empty.
#[inline]
#[must_use]
pub fn hit(limiter: &Limiter<MemoryStore>, subject: &str) -> bool {
    limiter
        .hit_now(subject)
        .is_ok_and(|decision| decision.is_allowed())
}

/// One hit on governor; returns whether it was admitted.
#[inline]
#[must_use]
pub fn check(limiter: &DefaultKeyedRateLimiter<String>, subject: &String) -> bool {
    limiter.check_key(subject).is_ok()
}

/// `user:0000000`, `user:0000001` and so on.
#[must_use]
pub fn subjects(count: u32) -> Vec<String> {
    (0..count).map(|n| format!("user:{n:07}")).collect()
}

/// `count` subjects, `keys` different ones in turn.
#[must_use]
pub fn names_in_turn(keys: u32, count: usize) -> Vec<String> {
    subjects(keys).into_iter().cycle().take(count).collect()
}

/// Hits every subject twice, so that all of them are known and in use.
///
/// # Panics
/// If a hit is denied.
pub fn warm_tollgate(limiter: &Limiter<MemoryStore>, names: &[String]) {
    for name in names.iter().chain(names) {
        assert!(hit(limiter, name), "there is plenty");
    }
}

/// Hits every subject twice, so that all of them are known and in use.
///
/// # Panics
/// If a hit is denied.
pub fn warm_governor(limiter: &DefaultKeyedRateLimiter<String>, names: &[String]) {
    for name in names.iter().chain(names) {
        assert!(check(limiter, name), "there is plenty");
    }
}

/// `count` indices below `subjects`, distributed by Zipf's law with exponent 1, always the same.
///
/// # Panics
/// If there are no subjects.
#[must_use]
pub fn zipf(subjects: u32, count: usize) -> Vec<usize> {
    let zipf = Zipf::new(f64::from(subjects), 1.0).expect("there are subjects");
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the samples are whole numbers from 1 to the number of subjects"
    )]
    let ranks = zipf
        .sample_iter(StdRng::seed_from_u64(42))
        .map(|rank: f64| rank as usize - 1);
    // Neighbours in popularity are not neighbours in memory: spread them by a step that visits every subject once.
    let step = 7_919;
    let subjects = usize::try_from(subjects).expect("it fits");
    ranks
        .take(count)
        .map(|rank| rank * step % subjects)
        .collect()
}
