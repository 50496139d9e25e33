//! Decisions: what a limiter answers, and every number a caller may want to know about it.

mod report;
mod unusual;

use std::time::Duration;

pub use report::Report;
pub(crate) use unusual::ShadowAnswer;
use unusual::{Enforced, Unusual};

use crate::algorithm::{Algorithm, Rule, Verdict};
use crate::batch::Verdicts;
use crate::cost::Cost;
use crate::error::{Error, Result};
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
    /// Nobody had to: all of the limiter's policies are in [shadow mode](Policy::shadow), so every hit is admitted.
    Shadow,
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
/// A policy in [shadow mode](Policy::shadow) has no part in the answer or its numbers. Only if all of the limiter's policies
/// are in shadow mode are `limit`, `remaining` and the reset those of the shadow that would bind, and then
/// [`binding`](Self::binding) says so; such a hit is always admitted.
///
/// Only the verdict is stored; limit, remaining and the rest are derived when asked for.
#[derive(Debug)]
#[must_use = "a decision does nothing by itself; look at `is_allowed`"]
pub struct Decision<'a> {
    policies: &'a Policies,
    outcome: Outcome,
    cost: Cost,
    // Known when it is made, so that whoever asks only this does not look into the outcome.
    allowed: bool,
    charges: bool,
}

#[derive(Debug)]
enum Outcome {
    Judged(Verdicts),
    Unusual(Box<Unusual>),
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
            allowed: verdicts.is_allowed(),
            outcome: Outcome::Judged(verdicts),
            cost,
            charges,
        }
    }

    #[cold]
    pub(crate) fn shadowed(
        policies: &'a Policies,
        enforced: Option<Verdicts>,
        shadows: Vec<ShadowAnswer>,
        cost: Cost,
        charges: bool,
    ) -> Self {
        let allowed = enforced.as_ref().is_none_or(Verdicts::is_allowed);
        let enforced = enforced.map_or(Enforced::None, Enforced::Judged);
        Self {
            policies,
            outcome: Outcome::Unusual(Box::new(Unusual { enforced, shadows })),
            cost,
            allowed,
            charges: charges && allowed,
        }
    }

    #[cold]
    pub(crate) fn failed(
        policies: &'a Policies,
        error: Error,
        mode: FailureMode,
        cost: Cost,
    ) -> Self {
        let mut modes = policies
            .enforced()
            .map(|bound| bound.policy.failure_mode_or(mode));
        let unusual = Unusual {
            enforced: Enforced::Failed { error, mode },
            shadows: Vec::new(),
        };
        Self {
            policies,
            allowed: modes.all(|mode| mode == FailureMode::Open),
            outcome: Outcome::Unusual(Box::new(unusual)),
            cost,
            charges: false,
        }
    }

    /// Whether the hit is admitted: every enforced policy agreed and was charged.
    #[must_use]
    #[inline]
    pub const fn is_allowed(&self) -> bool {
        self.allowed
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
        match self.on(index) {
            Ok((place, verdicts)) => {
                let charged = self.charges && verdicts.is_allowed();
                PolicyDecision::from_verdicts(policy, verdicts, place, self.cost, charged)
            }
            Err(mode) => PolicyDecision {
                policy,
                rule: *policy.rule(),
                answer: Answer::Assumed(mode),
                cost: self.cost,
            },
        }
    }

    /// The place of one policy in the store's answer, and that answer; else what is assumed.
    fn on(&self, index: usize) -> Result<(usize, &Verdicts), FailureMode> {
        match &self.outcome {
            Outcome::Judged(verdicts) => Ok((index, verdicts)),
            Outcome::Unusual(unusual) => unusual.on(self.policies, index),
        }
    }

    fn enforced(&self) -> impl Iterator<Item = PolicyDecision<'a>> + '_ {
        self.each().filter(|decision| !decision.is_shadow())
    }

    /// The charges that were made, in the limiter's order.
    pub(crate) fn charges(&self) -> impl Iterator<Item = Charge> + '_ {
        let places = (0..self.policies.len()).filter(|_| self.charges);
        places.filter_map(|policy| {
            let (place, verdicts) = self.on(policy).ok()?;
            verdicts.is_allowed().then(|| Charge {
                policy,
                at: verdicts.at(),
                mark: verdicts.as_slice()[place].mark(),
                source: verdicts.source(),
            })
        })
    }

    /// The enforced policies that denied, in the limiter's order; empty if the hit is admitted.
    ///
    /// Those in shadow mode that would have denied are in [`shadow_violated`](Self::shadow_violated).
    pub fn violated(&self) -> impl Iterator<Item = PolicyDecision<'a>> + '_ {
        self.enforced().filter(|decision| !decision.is_allowed())
    }

    /// The decision of the policy that binds.
    ///
    /// One in shadow mode only if all are: [`PolicyDecision::is_shadow`] tells, and then its numbers are not for clients.
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
        self.enforced()
            .try_fold(Duration::ZERO, |longest, decision| {
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
        self.enforced()
            .map(|decision| decision.delay())
            .max()
            .unwrap_or_default()
    }

    /// The reading of the store's clock that the hit was judged by; `None` if no store answered.
    ///
    /// Policies in shadow mode are judged a moment later; if there are no others, it is the first of their instants.
    #[must_use]
    pub fn at(&self) -> Option<Timestamp> {
        match &self.outcome {
            Outcome::Judged(verdicts) => Some(verdicts.at()),
            Outcome::Unusual(unusual) => unusual.at(),
        }
    }

    /// Who gave the answer.
    #[must_use]
    pub fn source(&self) -> Source {
        match &self.outcome {
            Outcome::Judged(verdicts) => verdicts.source(),
            Outcome::Unusual(unusual) => unusual.source(),
        }
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
            Outcome::Unusual(unusual) => unusual.error(),
        }
    }
}

/// A charge that was made: under which of the limiter's policies, and what a settlement needs to know of it.
#[derive(Debug)]
pub(crate) struct Charge {
    pub(crate) policy: usize,
    pub(crate) at: Timestamp,
    pub(crate) mark: u64,
    pub(crate) source: Source,
}

/// What one policy says to a hit or a peek.
#[derive(Clone, Copy, Debug)]
pub struct PolicyDecision<'a> {
    policy: &'a Policy,
    /// The policy's own, or that of its stand-in.
    rule: Rule,
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
        Self::under(policy, *policy.rule(), verdict, at, cost, charged)
    }

    /// The decision that follows from the verdict at `index`, under the rule that it was judged by.
    ///
    /// As [`from_verdict`](Self::from_verdict), also where a stand-in judged by a rule of its own.
    ///
    /// # Panics
    /// If there are not as many verdicts.
    #[must_use]
    pub fn from_verdicts(
        policy: &'a Policy,
        verdicts: &Verdicts,
        index: usize,
        cost: Cost,
        charged: bool,
    ) -> Self {
        let rule = *verdicts.rule(index).unwrap_or(policy.rule());
        let verdict = verdicts.as_slice()[index];
        Self::under(policy, rule, verdict, verdicts.at(), cost, charged)
    }

    const fn under(
        policy: &'a Policy,
        rule: Rule,
        verdict: Verdict,
        at: Timestamp,
        cost: Cost,
        charged: bool,
    ) -> Self {
        let charged = if charged { cost.get() } else { 0 };
        Self {
            policy,
            rule,
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

    /// Whether the policy is in [shadow mode](Policy::shadow): what it says is counted, and not enforced.
    #[must_use]
    pub const fn is_shadow(&self) -> bool {
        self.policy.is_shadow()
    }

    /// Whether this policy admits the hit, or would if it were enforced. It is charged only if all enforced policies do.
    #[must_use]
    pub const fn is_allowed(&self) -> bool {
        match self.answer {
            Answer::Judged { verdict, .. } => verdict.is_allowed(),
            Answer::Assumed(mode) => matches!(mode, FailureMode::Open),
        }
    }

    /// The most units this policy lets through at once: its burst, or its limit.
    ///
    /// Where a stand-in judged by a share of the quota, it is the share's.
    #[must_use]
    pub const fn limit(&self) -> u64 {
        self.rule.capacity()
    }

    /// Units left; never more than [`limit`](Self::limit).
    #[must_use]
    pub fn remaining(&self) -> u64 {
        match self.answer {
            Answer::Judged { verdict, at, .. } => {
                self.limit().saturating_sub(self.rule.used(&verdict, at))
            }
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
            Answer::Judged { verdict, at, .. } => match &self.rule {
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
        let micros = match &self.rule {
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
        Duration::from_micros(match &self.rule {
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
        match (self.policy.algorithm(), &self.rule, self.answer) {
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
        if self.is_shadow() != other.is_shadow() {
            return other.is_shadow();
        }
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
