//! Policies and calls that the tests share.
#![allow(
    dead_code,
    reason = "each test binary uses its own part of what they share"
)]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::hash::BuildHasher;

use tollgate_memory::{
    Algorithm, Batch, Check, Clock, Cost, InProcessStore, Key, MemoryStore, Op, Policy, Space,
    Timestamp, Verdict,
};

pub(crate) fn at(micros: u64) -> Timestamp {
    Timestamp::from_micros(micros).unwrap()
}

pub(crate) fn policy(name: &str, algorithm: Algorithm, quota: &str) -> Policy {
    Policy::new(name, algorithm, quota.parse().unwrap()).unwrap()
}

/// A policy and the space of its keys.
#[derive(Debug, Clone)]
pub(crate) struct Limit {
    pub(crate) policy: Policy,
    pub(crate) space: Space,
}

impl Limit {
    pub(crate) fn new(policy: Policy) -> Self {
        let space = Space::new("test", "", &policy);
        Self { policy, space }
    }

    pub(crate) fn of(algorithm: Algorithm, quota: &str) -> Self {
        Self::new(policy("p", algorithm, quota))
    }

    pub(crate) fn check<'a>(&'a self, subject: &'a [u8], op: Op) -> Check<'a> {
        Check {
            key: Key::new(&self.space, subject).unwrap(),
            policy: &self.policy,
            op,
        }
    }
}

pub(crate) fn hit(units: u64) -> Op {
    Op::Hit(Cost::new(units).unwrap())
}

pub(crate) fn judge<C: Clock, H: BuildHasher + Send + Sync + 'static>(
    store: &MemoryStore<C, H>,
    limit: &Limit,
    subject: &[u8],
    op: Op,
    now: Option<Timestamp>,
) -> Verdict {
    let check = limit.check(subject, op);
    let verdicts = store.judge(&Batch::of_one(&check).at(now)).unwrap();
    verdicts.as_slice()[0]
}
