//! The reference replay: 10 per minute; 1, 9 and 10 hits at t = 0, 59 and 61 seconds.
//!
//! What each algorithm admits, and why:
//! - fixed window: the window of the first hit ends at 60 s, so the ten at 61 s begin a new one: 1, 9, 10;
//! - sliding window: at 61 s the window of the first ten is 1 s gone, `floor(10 * 59 / 60) = 9`, so one fits: 1, 9, 1;
//! - sliding log: at 61 s only the hit at 0 s has left the log, so one fits: 1, 9, 1;
//! - the bucket: full at 59 s but for nine, `6 s` a unit: at 61 s it holds `9 - 2/6`, so one fits: 1, 9, 1.

use tollgate_core::{Algorithm, Cost, Op, Policy, Quota, Timestamp};

const START: u64 = 1_000_000_000_000_000;

fn admitted(algorithm: Algorithm) -> [u64; 3] {
    let policy =
        Policy::new("reference", algorithm, Quota::per_minute(10)).expect("a legal policy");
    let mut state = None;
    [(0, 1), (59, 9), (61, 10)].map(|(second, hits)| {
        let now = Timestamp::from_micros(START + second * 1_000_000).expect("in range");
        let admitted = (0..hits).filter(|_| {
            let op = Op::Hit(Cost::ONE);
            policy.rule().step(&mut state, now, op).is_allowed()
        });
        u64::try_from(admitted.count()).expect("at most ten")
    })
}

#[test]
fn a_fixed_window_admits_ten_on_each_side_of_its_boundary() {
    assert_eq!(admitted(Algorithm::FixedWindow), [1, 9, 10]);
}

#[test]
fn a_fixed_window_aligned_to_the_minute_admits_the_same_as_the_boundary_falls_at_60() {
    let policy = Policy::new("reference", Algorithm::FixedWindow, Quota::per_minute(10))
        .and_then(|policy| policy.aligned(0))
        .expect("a legal policy");
    // 40 s into a calendar minute: hits at 0 s fall into one window, those at 59 s and 61 s into the next.
    let start = START / 60_000_000 * 60_000_000 + 40_000_000;
    let mut state = None;
    let admitted = [(0, 1), (59, 9), (61, 10)].map(|(second, hits)| {
        let now = Timestamp::from_micros(start + second * 1_000_000).expect("in range");
        (0..hits)
            .filter(|_| {
                policy
                    .rule()
                    .step(&mut state, now, Op::Hit(Cost::ONE))
                    .is_allowed()
            })
            .count()
    });
    assert_eq!(admitted, [1, 9, 1]);
}

#[test]
fn a_sliding_window_admits_one_after_the_boundary() {
    assert_eq!(admitted(Algorithm::SlidingWindow), [1, 9, 1]);
}

#[test]
fn a_sliding_log_admits_one_after_the_boundary() {
    assert_eq!(admitted(Algorithm::SlidingLog), [1, 9, 1]);
}

#[test]
fn the_buckets_admit_one_after_the_boundary() {
    assert_eq!(admitted(Algorithm::TokenBucket), [1, 9, 1]);
    assert_eq!(admitted(Algorithm::LeakyBucket), [1, 9, 1]);
    assert_eq!(admitted(Algorithm::Gcra), [1, 9, 1]);
}
