//! Decisions: what a limiter answers, and every number a caller may want to know about it.

mod policy_decision;
mod report;
mod unusual;

use std::time::Duration;

pub use policy_decision::PolicyDecision;
pub use report::Report;
pub(crate) use unusual::ShadowAnswer;
use unusual::{Enforced, Unusual};

use crate::batch::Verdicts;
use crate::cost::Cost;
use crate::error::{Error, Result};
use crate::limiter::{FailureMode, Policies};
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
    /// Nobody had to: all of the limiter's policies are in [shadow mode](crate::Policy::shadow), so every hit is admitted.
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
/// A policy in [shadow mode](crate::Policy::shadow) has no part in the answer or its numbers. Only if all of the limiter's policies
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
            Err(mode) => PolicyDecision::assumed(policy, mode, self.cost),
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
