//! Random policies, from ordinary to the edge of what is legal.

use std::time::Duration;

use fastrand::Rng;
use tollgate_core::{Algorithm, Family, Policy, Quota};

const ORDINARY_LIMITS: [u64; 9] = [0, 1, 2, 3, 5, 7, 10, 60, 1_000];
const ORDINARY_PERIODS_MS: [u64; 7] = [1_000, 1_500, 7_000, 60_000, 61_001, 3_600_000, 86_400_000];

const EXTREME_LIMITS: [u64; 9] = [
    1,
    7,
    999_983,
    1_000_000,
    300_000_000,
    4_294_967_296,
    999_999_999_989,
    Quota::MAX_LIMIT - 1,
    Quota::MAX_LIMIT,
];
const EXTREME_PERIODS_MS: [u64; 8] = [
    1,
    2,
    3,
    1_000,
    86_400_000,
    30 * 86_400_000,
    365 * 86_400_000,
    400 * 86_400_000,
];

/// A random policy of `algorithm`. All of them bear one name, so that those of one family share a key.
pub(crate) fn random(rng: &mut Rng, algorithm: Algorithm, extreme: bool) -> Policy {
    loop {
        // Not every pair can be counted exactly, and those that cannot are no quotas.
        let Some(quota) = quota(rng, algorithm, extreme) else {
            continue;
        };
        let policy = Policy::new("kit", algorithm, quota).expect("no burst where none is legal");
        if algorithm == Algorithm::FixedWindow && rng.u8(..3) == 0 {
            return policy
                .aligned(rng.i32(-18 * 60..=18 * 60))
                .expect("a fixed window can be aligned");
        }
        return policy;
    }
}

/// Another policy for the same key.
pub(crate) fn of_same_key(rng: &mut Rng, algorithm: Algorithm, extreme: bool) -> Policy {
    let algorithm = match algorithm.family() {
        Family::Bucket => *pick(
            rng,
            &[
                Algorithm::TokenBucket,
                Algorithm::LeakyBucket,
                Algorithm::Gcra,
            ],
        ),
        Family::FixedWindow | Family::SlidingWindow | Family::SlidingLog => algorithm,
    };
    random(rng, algorithm, extreme)
}

fn quota(rng: &mut Rng, algorithm: Algorithm, extreme: bool) -> Option<Quota> {
    let (limits, periods) = if extreme {
        (&EXTREME_LIMITS[..], &EXTREME_PERIODS_MS[..])
    } else {
        (&ORDINARY_LIMITS[..], &ORDINARY_PERIODS_MS[..])
    };
    let (limit, period) = (
        *pick(rng, limits),
        Duration::from_millis(*pick(rng, periods)),
    );
    let quota = Quota::new(limit, period).ok()?;
    if algorithm.family() != Family::Bucket || rng.bool() {
        return Some(quota);
    }
    quota.with_burst(*pick(rng, limits)).ok()
}

pub(crate) fn pick<'a, T>(rng: &mut Rng, from: &'a [T]) -> &'a T {
    &from[rng.usize(..from.len())]
}
