//! A decision's numbers in a value of its own.

use std::fmt;
use std::time::Duration;

use crate::algorithm::Algorithm;
use crate::decision::{Decision, Source};
use crate::time::Timestamp;

impl Decision<'_> {
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
            shadow_violated: self
                .shadow_violated()
                .map(|decision| decision.policy().name().to_owned())
                .collect(),
            shadow_failed: self
                .shadow_failed()
                .map(|(policy, _)| policy.name().to_owned())
                .collect(),
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
    /// The names of the policies in shadow mode that would have denied.
    pub shadow_violated: Vec<String>,
    /// The names of the policies in shadow mode that the store failed to judge.
    pub shadow_failed: Vec<String>,
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
        }?;
        if !self.shadow_violated.is_empty() {
            write!(
                f,
                "; in shadow, denied by {}",
                self.shadow_violated.join(", ")
            )?;
        }
        if !self.shadow_failed.is_empty() {
            write!(
                f,
                "; in shadow, not judged by {}",
                self.shadow_failed.join(", ")
            )?;
        }
        Ok(())
    }
}
