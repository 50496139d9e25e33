//! What a case counts, and what the store says about it.

use std::time::Duration;

use tollgate_core::{
    Algorithm, Check, Cost, Key, Op, Policy, PolicyDecision, Quota, Settlement, Source, Space,
    Timestamp, Verdict,
};

use crate::outcome::{Outcome, Stop};

/// A key with the policy it is judged under.
#[derive(Clone, Debug)]
pub(crate) struct Counter {
    policy: Policy,
    space: Space,
    subject: Vec<u8>,
}

impl Counter {
    pub(crate) fn new(prefix: &str, scope: &str, policy: Policy, subject: &[u8]) -> Self {
        Self {
            space: Space::new(prefix, scope, &policy),
            policy,
            subject: subject.to_vec(),
        }
    }

    pub(crate) fn key(&self) -> Key<'_> {
        Key::new(&self.space, &self.subject).expect("cases name their subjects")
    }

    pub(crate) const fn policy(&self) -> &Policy {
        &self.policy
    }

    pub(crate) fn check(&self, op: Op) -> Check<'_> {
        Check {
            key: self.key(),
            policy: &self.policy,
            op,
        }
    }

    pub(crate) fn hit(&self, units: u64) -> Check<'_> {
        self.check(Op::Hit(cost(units)))
    }

    pub(crate) fn peek(&self, units: u64) -> Check<'_> {
        self.check(Op::Peek(cost(units)))
    }
}

/// A cost that a case has written down.
pub(crate) fn cost(units: u64) -> Cost {
    Cost::new(units).expect("cases hit for at least one unit")
}

/// A policy that a case has written down.
pub(crate) fn policy(algorithm: Algorithm, quota: &str) -> Policy {
    let quota: Quota = quota.parse().expect("cases write legal quotas");
    Policy::new("kit", algorithm, quota).expect("cases write legal policies")
}

/// A store's answer to one check.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    asked: String,
    pub(crate) verdict: Verdict,
    pub(crate) at: Timestamp,
    pub(crate) source: Source,
    pub(crate) allowed: bool,
    pub(crate) limit: u64,
    pub(crate) remaining: u64,
    pub(crate) retry_after: Option<Duration>,
    pub(crate) reset_after: Duration,
    pub(crate) delay: Duration,
    cost: Cost,
}

impl Answer {
    pub(crate) fn new(
        check: &Check<'_>,
        verdict: Verdict,
        at: Timestamp,
        source: Source,
        charged: bool,
    ) -> Self {
        let cost = check.op.cost();
        let decision = PolicyDecision::from_verdict(check.policy, verdict, at, cost, charged);
        Self {
            asked: format!("{} under {}", describe(check.op), check.policy),
            verdict,
            at,
            source,
            allowed: decision.is_allowed(),
            limit: decision.limit(),
            remaining: decision.remaining(),
            retry_after: decision.retry_after(),
            reset_after: decision.reset_after(),
            delay: decision.delay(),
            cost,
        }
    }

    #[track_caller]
    pub(crate) fn admitted(&self) -> Outcome<&Self> {
        self.expect(self.allowed, "should be admitted")
    }

    #[track_caller]
    pub(crate) fn denied(&self) -> Outcome<&Self> {
        self.expect(!self.allowed, "should be denied")
    }

    #[track_caller]
    pub(crate) fn denied_for(&self, wait: Duration) -> Outcome<&Self> {
        let right = !self.allowed && self.retry_after == Some(wait);
        self.expect(right, &format!("should be denied for {wait:?}"))
    }

    #[track_caller]
    pub(crate) fn denied_for_ever(&self) -> Outcome<&Self> {
        let right = !self.allowed && self.retry_after.is_none();
        self.expect(right, "should be denied for ever, because it can never fit")
    }

    #[track_caller]
    pub(crate) fn leaving(&self, remaining: u64) -> Outcome<&Self> {
        let right = self.remaining == remaining;
        self.expect(
            right,
            &format!("should leave {remaining} of {}", self.limit),
        )
    }

    /// Nothing has ever been charged, as far as anybody can tell.
    #[track_caller]
    pub(crate) fn as_never_seen(&self) -> Outcome<&Self> {
        let right = self.remaining == self.limit && self.reset_after.is_zero();
        self.expect(right, "should find the key as if never seen")
    }

    /// The settlement by which the hit behind this answer really cost `actual`.
    pub(crate) const fn settled_at(&self, actual: u64) -> Op {
        Op::Settle(Settlement {
            charged_at: self.at,
            charged: self.cost,
            mark: self.verdict.mark(),
            actual,
        })
    }

    #[track_caller]
    fn expect(&self, right: bool, should: &str) -> Outcome<&Self> {
        if right {
            return Ok(self);
        }
        Err(Stop::failed(format!(
            "{} {should}, but it was {self}",
            self.asked
        )))
    }
}

impl std::fmt::Display for Answer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            remaining,
            limit,
            reset_after,
            at,
            ..
        } = self;
        match (self.allowed, self.retry_after) {
            (true, _) => f.write_str("admitted")?,
            (false, Some(wait)) => write!(f, "denied for {wait:?}")?,
            (false, None) => f.write_str("denied for ever")?,
        }
        write!(
            f,
            " with {remaining} of {limit} left and a reset in {reset_after:?}, judged at {at}"
        )
    }
}

pub(crate) fn describe(op: Op) -> String {
    match op {
        Op::Hit(cost) => format!("a hit of {cost}"),
        Op::Peek(cost) => format!("a peek at {cost}"),
        Op::Settle(settlement) => format!(
            "a settlement of {} charged at {} for {} used",
            settlement.charged, settlement.charged_at, settlement.actual
        ),
    }
}
