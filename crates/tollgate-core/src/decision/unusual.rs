//! Decisions that take more than one answer of the store: policies in shadow mode, and a store that failed.

use crate::batch::Verdicts;
use crate::decision::{Decision, Outcome, PolicyDecision, Source};
use crate::error::{Error, Result};
use crate::limiter::{FailureMode, Policies};
use crate::policy::Policy;
use crate::time::Timestamp;

/// The store's answer about one policy in shadow mode; `None` if the store was not asked.
pub(crate) type ShadowAnswer = Option<Result<Verdicts>>;

/// What a store said, or did not say, where it is not one answer about enforced policies.
///
/// It lies behind a pointer, so that the usual decision stays small.
#[derive(Debug)]
pub(super) struct Unusual {
    pub(super) enforced: Enforced,
    /// About each policy in shadow mode, in the limiter's order.
    pub(super) shadows: Vec<ShadowAnswer>,
}

/// What is known about the enforced policies.
#[derive(Debug)]
pub(super) enum Enforced {
    /// There is none, so nobody stands in the hit's way.
    None,
    Judged(Verdicts),
    Failed {
        error: Error,
        mode: FailureMode,
    },
}

impl Unusual {
    pub(super) fn source(&self) -> Source {
        match &self.enforced {
            Enforced::None => Source::Shadow,
            Enforced::Judged(verdicts) => verdicts.source(),
            Enforced::Failed { .. } => Source::FailureMode,
        }
    }

    pub(super) fn at(&self) -> Option<Timestamp> {
        match &self.enforced {
            Enforced::None => self
                .shadows
                .iter()
                .flatten()
                .flatten()
                .next()
                .map(Verdicts::at),
            Enforced::Judged(verdicts) => Some(verdicts.at()),
            Enforced::Failed { .. } => None,
        }
    }

    pub(super) fn error(&self) -> Option<&Error> {
        match &self.enforced {
            Enforced::None | Enforced::Judged(_) => None,
            Enforced::Failed { error, .. } => Some(error),
        }
    }

    /// The place of the policy in place `index` of all in the store's answer, and that answer; else what is assumed.
    pub(super) fn on(
        &self,
        policies: &Policies,
        index: usize,
    ) -> Result<(usize, &Verdicts), FailureMode> {
        let bound = policies.bound();
        let policy = &bound[index].policy;
        let before = bound[..index].iter().map(|bound| bound.policy.is_shadow());
        let place = before
            .filter(|shadow| *shadow == policy.is_shadow())
            .count();
        if policy.is_shadow() {
            return match self.shadows.get(place) {
                Some(Some(Ok(verdicts))) => Ok((0, verdicts)),
                _ => Err(FailureMode::Open),
            };
        }
        match &self.enforced {
            Enforced::Judged(verdicts) => Ok((place, verdicts)),
            Enforced::Failed { mode, .. } => Err(policy.failure_mode_or(*mode)),
            Enforced::None => Err(FailureMode::Open),
        }
    }

    /// The policies in shadow mode that the store failed to judge, and why.
    fn failed<'a>(&self, policies: &'a Policies) -> impl Iterator<Item = (&'a Policy, &Error)> {
        let shadows = policies.shadows().zip(&self.shadows);
        shadows.filter_map(|(bound, answer)| match answer {
            Some(Err(error)) => Some((&bound.policy, error)),
            _ => None,
        })
    }
}

impl<'a> Decision<'a> {
    /// The policies in [shadow mode](Policy::shadow) that would have denied the hit, in the limiter's order.
    ///
    /// If an enforced policy denied the hit, they were only asked what they would have said, and nothing was charged.
    pub fn shadow_violated(&self) -> impl Iterator<Item = PolicyDecision<'a>> + '_ {
        self.each()
            .filter(|decision| decision.is_shadow() && !decision.is_allowed())
    }

    /// The policies in [shadow mode](Policy::shadow) that the store failed to judge, and its trouble with each.
    ///
    /// The hit does not suffer: such a policy counts as one that admits. Whether it was charged, the error says.
    pub fn shadow_failed(&self) -> impl Iterator<Item = (&'a Policy, &Error)> + '_ {
        let unusual = match &self.outcome {
            Outcome::Judged(_) => None,
            Outcome::Unusual(unusual) => Some(unusual),
        };
        let failed = unusual.map(|unusual| unusual.failed(self.policies));
        failed.into_iter().flatten()
    }
}
