//! Decisions: what a limiter answers, and every number a caller may want to know about it.

use std::fmt;
use std::time::Duration;

use crate::algorithm::{Algorithm, Rule, Verdict};
use crate::batch::Verdicts;
use crate::cost::Cost;
use crate::error::Error;
use crate::limiter::{FailureMode, Policies};
use crate::policy::Policy;
use crate::time::Timestamp;

/// Who gave the answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Source {
    /// The store, by the algorithm itself.
    #[default]
    Store,
    /// The store, by a counter of its own that serves this case faster.
    NativeCounter,
    /// A local memory of a denial that is still in force.
    DenyCache,
    /// A local store that stands in while the real one is away.
    Fallback,
    /// Nobody judged: the [`FailureMode`] decided.
    FailureMode,
}

impl Source {
    /// Whether the answer was given without the store that should have given it.
    #[must_use]
    pub const fn is_degraded(self) -> bool {
        matches!(self, Self::Fallback | Self::FailureMode)
    }
}

/// The answer to a hit or a peek. A denial is a value, never an error.
///
/// With several policies, the numbers are those of the policy that binds: among violated ones the one that takes
/// longest, otherwise the one with the fewest units remaining; the first in the list where they tie.
/// [`each`](Self::each) has them all.
///
/// Only the verdict is stored; limit, remaining and the rest are derived when asked for.
#[derive(Debug)]
#[must_use = "a decision does nothing by itself; look at `is_allowed`"]
pub struct Decision<'a> {
    policies: &'a Policies,
    outcome: Outcome,
    cost: Cost,
    charges: bool,
}

#[derive(Debug)]
enum Outcome {
    Judged(Verdicts),
    Failed { error: Error, mode: FailureMode },
}

impl<'a> Decision<'a> {
    #[inline]
    pub(crate) const fn judged(
        policies: &'a Policies,
        verdicts: Verdicts,
        cost: Cost,
        charges: bool,
    ) -> Self {
        Self {
            policies,
            outcome: Outcome::Judged(verdicts),
            cost,
            charges,
        }
    }

    #[cold]
    pub(crate) const fn failed(
        policies: &'a Policies,
        error: Error,
        mode: FailureMode,
        cost: Cost,
    ) -> Self {
        Self {
            policies,
            outcome: Outcome::Failed { error, mode },
            cost,
            charges: false,
        }
    }

    pub(crate) fn verdicts(&self) -> Option<&Verdicts> {
        match &self.outcome {
            Outcome::Judged(verdicts) => Some(verdicts),
            Outcome::Failed { .. } => None,
        }
    }

    /// Whether the hit is admitted: every policy agreed and was charged.
    #[must_use]
    #[inline]
    pub fn is_allowed(&self) -> bool {
        match &self.outcome {
            Outcome::Judged(verdicts) => verdicts.is_allowed(),
            Outcome::Failed { .. } => self.each().all(|decision| decision.is_allowed()),
        }
    }

    /// Whether the hit is denied and will be, however long the caller waits: it costs more than can ever fit.
    #[must_use]
    pub fn is_never(&self) -> bool {
        self.retry_after().is_none()
    }

    /// The decision of each policy, in the limiter's order.
    #[must_use]
    pub fn each(&self) -> impl ExactSizeIterator<Item = PolicyDecision<'a>> + '_ {
        (0..self.policies.len()).map(|index| self.nth(index))
    }

    fn nth(&self, index: usize) -> PolicyDecision<'a> {
        let policy = &self.policies.bound()[index].policy;
        let answer = match &self.outcome {
            Outcome::Judged(verdicts) => Answer::Judged {
                verdict: verdicts.as_slice()[index],
                at: verdicts.at(),
                charged: if self.charges && verdicts.is_allowed() {
                    self.cost.get()
                } else {
                    0
                },
            },
            Outcome::Failed { mode, .. } => Answer::Assumed(policy.failure_mode().unwrap_or(*mode)),
        };
        PolicyDecision {
            policy,
            answer,
            cost: self.cost,
        }
    }

    /// The policies that denied, in the limiter's order; empty if the hit is admitted.
    pub fn violated(&self) -> impl Iterator<Item = PolicyDecision<'a>> + '_ {
        self.each().filter(|decision| !decision.is_allowed())
    }

    /// The decision of the policy that binds.
    #[must_use]
    pub fn binding(&self) -> PolicyDecision<'a> {
        self.each().fold(self.nth(0), |binding, other| {
            if other.binds_before(&binding) {
                other
            } else {
                binding
            }
        })
    }

    /// The most units the binding policy lets through at once: its burst, or its limit.
    #[must_use]
    pub fn limit(&self) -> u64 {
        self.binding().limit()
    }

    /// Units left under the binding policy; never more than [`limit`](Self::limit).
    #[must_use]
    pub fn remaining(&self) -> u64 {
        self.binding().remaining()
    }

    /// How long to wait until the same hit is admitted, if nobody else hits in between.
    ///
    /// Exact to the microsecond: admitted then, and not before. Zero if it is admitted now; `None` if it never will be.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        self.each().try_fold(Duration::ZERO, |longest, decision| {
            Some(longest.max(decision.retry_after()?))
        })
    }

    /// The time until the binding policy's key is as good as never seen.
    #[must_use]
    pub fn reset_after(&self) -> Duration {
        self.binding().reset_after()
    }

    /// The instant of [`reset_after`](Self::reset_after) on the store's clock; `None` if no store answered.
    #[must_use]
    pub fn reset_at(&self) -> Option<Timestamp> {
        self.binding().reset_at()
    }

    /// How long an admitted hit should wait so that hits leave at the steady rate; zero but for leaky buckets.
    ///
    /// Zero if the hit is denied, also by another policy than the leaky bucket.
    #[must_use]
    pub fn delay(&self) -> Duration {
        if !self.is_allowed() {
            return Duration::ZERO;
        }
        self.each()
            .map(|decision| decision.delay())
            .max()
            .unwrap_or_default()
    }

    /// The reading of the store's clock that the hit was judged by; `None` if no store answered.
    #[must_use]
    pub fn at(&self) -> Option<Timestamp> {
        self.verdicts().map(Verdicts::at)
    }

    /// Who gave the answer.
    #[must_use]
    pub fn source(&self) -> Source {
        self.verdicts()
            .map_or(Source::FailureMode, Verdicts::source)
    }

    /// Whether the answer was given without the store that should have given it.
    #[must_use]
    pub fn is_degraded(&self) -> bool {
        self.source().is_degraded()
    }

    /// The store's trouble behind an answer of the [`FailureMode`].
    #[must_use]
    pub fn error(&self) -> Option<&Error> {
        match &self.outcome {
            Outcome::Judged(_) => None,
            Outcome::Failed { error, .. } => Some(error),
        }
    }

    /// The same numbers in a value of its own, which outlives the limiter.
    #[must_use]
    pub fn to_report(&self) -> Report {
        let binding = self.binding();
        Report {
            allowed: self.is_allowed(),
            policy: binding.policy().name().to_owned(),
            algorithm: binding.policy().algorithm(),
            limit: binding.limit(),
            remaining: binding.remaining(),
            retry_after: self.retry_after(),
            reset_after: binding.reset_after(),
            reset_at: binding.reset_at(),
            delay: self.delay(),
            source: self.source(),
            violated: self
                .violated()
                .map(|decision| decision.policy().name().to_owned())
                .collect(),
        }
    }
}

/// What one policy says to a hit or a peek.
#[derive(Clone, Copy, Debug)]
pub struct PolicyDecision<'a> {
    policy: &'a Policy,
    answer: Answer,
    cost: Cost,
}

#[derive(Clone, Copy, Debug)]
enum Answer {
    Judged {
        verdict: Verdict,
        at: Timestamp,
        charged: u64,
    },
    Assumed(FailureMode),
}

impl<'a> PolicyDecision<'a> {
    /// The decision that follows from a store's `verdict` on an uncharged or denied `cost` under `policy`.
    ///
    /// For those who speak to a store without a limiter; `charged` is the cost if the verdict came with a charge.
    #[must_use]
    pub const fn from_verdict(
        policy: &'a Policy,
        verdict: Verdict,
        at: Timestamp,
        cost: Cost,
        charged: bool,
    ) -> Self {
        let charged = if charged { cost.get() } else { 0 };
        Self {
            policy,
            answer: Answer::Judged {
                verdict,
                at,
                charged,
            },
            cost,
        }
    }

    /// The policy.
    #[must_use]
    pub const fn policy(&self) -> &'a Policy {
        self.policy
    }

    /// Whether this policy admits the hit. It is charged only if all of the limiter's policies do.
    #[must_use]
    pub const fn is_allowed(&self) -> bool {
        match self.answer {
            Answer::Judged { verdict, .. } => verdict.is_allowed(),
            Answer::Assumed(mode) => matches!(mode, FailureMode::Open),
        }
    }

    /// The most units this policy lets through at once: its burst, or its limit.
    #[must_use]
    pub const fn limit(&self) -> u64 {
        self.policy.rule().capacity()
    }

    /// Units left; never more than [`limit`](Self::limit).
    #[must_use]
    pub fn remaining(&self) -> u64 {
        match self.answer {
            Answer::Judged { verdict, at, .. } => match self.policy.rule() {
                Rule::Bucket(rule) => rule.remaining(&verdict),
                Rule::FixedWindow(rule) => rule.remaining(&verdict),
                Rule::SlidingWindow(rule) => rule.remaining(&verdict, at),
                Rule::SlidingLog(rule) => rule.remaining(&verdict),
            },
            Answer::Assumed(FailureMode::Open) => self.limit(),
            Answer::Assumed(FailureMode::Closed | FailureMode::Fallback) => 0,
        }
    }

    /// How long to wait until the same hit is admitted: see [`Decision::retry_after`].
    ///
    /// If the [`FailureMode`] denied, it is [`FailureMode::RETRY_AFTER`], since nobody knows.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        if self.is_allowed() {
            return Some(Duration::ZERO);
        }
        let cost = self.cost.get();
        match self.answer {
            Answer::Judged { verdict, at, .. } => match self.policy.rule() {
                Rule::Bucket(rule) => rule.retry_after(&verdict, at, cost),
                Rule::FixedWindow(rule) => rule.retry_after(&verdict, at, cost),
                Rule::SlidingWindow(rule) => rule.retry_after(&verdict, at, cost),
                Rule::SlidingLog(rule) => rule.retry_after(&verdict, at, cost),
            }
            .map(Duration::from_micros),
            Answer::Assumed(_) => Some(FailureMode::RETRY_AFTER),
        }
    }

    /// The time until more units are left than now; zero if none are used, `None` if no store answered.
    ///
    /// Exact to the microsecond, but for an admitted hit on a sliding log: its verdict does not tell how old the oldest
    /// entry is, so this is the time until all of them are gone. Never longer than the
    /// [`retry_after`](Self::retry_after) of a denied hit that fits some time.
    #[must_use]
    pub fn more_after(&self) -> Option<Duration> {
        let Answer::Judged { verdict, at, .. } = self.answer else {
            return None;
        };
        let wanted = self.remaining() + 1;
        if wanted > self.limit() {
            return Some(Duration::ZERO);
        }
        let micros = match self.policy.rule() {
            Rule::Bucket(rule) => rule.retry_after(&verdict, at, wanted),
            Rule::FixedWindow(rule) => rule.retry_after(&verdict, at, wanted),
            Rule::SlidingWindow(rule) => rule.retry_after(&verdict, at, wanted),
            Rule::SlidingLog(_) => match verdict.retry_at() {
                0 => return Some(self.reset_after()),
                retry_at => Some(retry_at.saturating_sub(at.as_micros())),
            },
        };
        micros.map(Duration::from_micros)
    }

    /// The time until the key is as good as never seen; zero if no store answered.
    #[must_use]
    pub fn reset_after(&self) -> Duration {
        let Answer::Judged { verdict, at, .. } = self.answer else {
            return Duration::ZERO;
        };
        Duration::from_micros(match self.policy.rule() {
            Rule::Bucket(rule) => rule.reset_after(verdict.level(), at),
            Rule::FixedWindow(rule) => rule.reset_after(&verdict, at),
            Rule::SlidingWindow(rule) => rule.reset_after(&verdict.windows(), at),
            Rule::SlidingLog(_) => verdict.reset_at().saturating_sub(at.as_micros()),
        })
    }

    /// The instant of [`reset_after`](Self::reset_after) on the store's clock; `None` if no store answered.
    #[must_use]
    pub fn reset_at(&self) -> Option<Timestamp> {
        match self.answer {
            Answer::Judged { at, .. } => Some(at + self.reset_after()),
            Answer::Assumed(_) => None,
        }
    }

    /// How long an admitted hit should wait so that hits leave at the steady rate; zero but for leaky buckets.
    #[must_use]
    pub fn delay(&self) -> Duration {
        match (self.policy.algorithm(), self.policy.rule(), self.answer) {
            (
                Algorithm::LeakyBucket,
                Rule::Bucket(rule),
                Answer::Judged {
                    verdict,
                    at,
                    charged,
                },
            ) if verdict.is_allowed() => Duration::from_micros(rule.delay(&verdict, at, charged)),
            _ => Duration::ZERO,
        }
    }

    /// Whether a caller should hear of this decision rather than of `other`.
    fn binds_before(&self, other: &Self) -> bool {
        match (self.is_allowed(), other.is_allowed()) {
            (false, true) => true,
            (true, false) => false,
            (true, true) => self.remaining() < other.remaining(),
            (false, false) => match (self.retry_after(), other.retry_after()) {
                (None, Some(_)) => true,
                (Some(mine), Some(others)) => mine > others,
                (_, None) => false,
            },
        }
    }
}

/// A [`Decision`]'s numbers in a value of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// Whether the hit was admitted.
    pub allowed: bool,
    /// The name of the policy that binds.
    pub policy: String,
    /// Its algorithm.
    pub algorithm: Algorithm,
    /// The most units it lets through at once.
    pub limit: u64,
    /// Units left under it.
    pub remaining: u64,
    /// How long to wait until the same hit is admitted; `None` if it never will be.
    pub retry_after: Option<Duration>,
    /// The time until the key is as good as never seen.
    pub reset_after: Duration,
    /// The instant of it on the store's clock; `None` if no store answered.
    pub reset_at: Option<Timestamp>,
    /// How long an admitted hit should wait so that hits leave at the steady rate.
    pub delay: Duration,
    /// Who gave the answer.
    pub source: Source,
    /// The names of the policies that denied.
    pub violated: Vec<String>,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            policy,
            limit,
            remaining,
            ..
        } = self;
        match (self.allowed, self.retry_after) {
            (true, _) => write!(f, "allowed, {remaining} of {limit} left ({policy})"),
            (false, None) => write!(f, "denied, it never fits {limit} ({policy})"),
            (false, Some(wait)) => write!(f, "denied, retry after {wait:?} ({policy})"),
        }
    }
}
