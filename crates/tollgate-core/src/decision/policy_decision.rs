//! What one policy says, and every number that follows from its verdict.

use std::time::Duration;

use crate::algorithm::{Algorithm, Rule, Verdict};
use crate::batch::Verdicts;
use crate::cost::Cost;
use crate::limiter::FailureMode;
use crate::policy::Policy;
use crate::time::Timestamp;

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

    /// What `mode` makes of a hit that nobody judged.
    pub(super) const fn assumed(policy: &'a Policy, mode: FailureMode, cost: Cost) -> Self {
        Self {
            policy,
            rule: *policy.rule(),
            answer: Answer::Assumed(mode),
            cost,
        }
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

    /// How long to wait until the same hit is admitted: see [`Decision::retry_after`](crate::Decision::retry_after).
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
    pub(super) fn binds_before(&self, other: &Self) -> bool {
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
