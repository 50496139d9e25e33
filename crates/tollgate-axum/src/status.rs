//! What one policy said, in a value of its own.

use std::time::Duration;

use tollgate_core::{Policy, PolicyDecision, Timestamp};

/// What one policy said to a request.
#[derive(Clone, Debug)]
pub struct PolicyStatus {
    policy: Policy,
    allowed: bool,
    remaining: u64,
    retry_after: Option<Duration>,
    more_after: Option<Duration>,
    reset_after: Duration,
    reset_at: Option<Timestamp>,
    delay: Duration,
}

impl PolicyStatus {
    pub(crate) fn of(decision: &PolicyDecision<'_>) -> Self {
        Self {
            policy: decision.policy().clone(),
            allowed: decision.is_allowed(),
            remaining: decision.remaining(),
            retry_after: decision.retry_after(),
            more_after: decision.more_after(),
            reset_after: decision.reset_after(),
            reset_at: decision.reset_at(),
            delay: decision.delay(),
        }
    }

    /// The policy.
    #[must_use]
    pub const fn policy(&self) -> &Policy {
        &self.policy
    }

    /// Whether it is in [shadow mode](Policy::shadow): what it says is counted, and not enforced.
    #[must_use]
    pub const fn is_shadow(&self) -> bool {
        self.policy.is_shadow()
    }

    /// Whether it admits the request, or would if it were enforced.
    #[must_use]
    pub const fn is_allowed(&self) -> bool {
        self.allowed
    }

    /// The most units it lets through at once: its burst, or its limit.
    #[must_use]
    pub const fn limit(&self) -> u64 {
        self.policy.rule().capacity()
    }

    /// Units left, after this request.
    #[must_use]
    pub const fn remaining(&self) -> u64 {
        self.remaining
    }

    /// How long to wait until the same request is admitted; zero if it was, `None` if it never will be.
    #[must_use]
    pub const fn retry_after(&self) -> Option<Duration> {
        self.retry_after
    }

    /// The time until more units are left than now; zero if none are used, `None` if no store answered.
    #[must_use]
    pub const fn more_after(&self) -> Option<Duration> {
        self.more_after
    }

    /// The time until the key is as good as never seen; zero if no store answered.
    #[must_use]
    pub const fn reset_after(&self) -> Duration {
        self.reset_after
    }

    /// The instant of it on the store's clock; `None` if no store answered.
    #[must_use]
    pub const fn reset_at(&self) -> Option<Timestamp> {
        self.reset_at
    }

    /// How long the request should wait so that requests leave at the steady rate; zero but for leaky buckets.
    #[must_use]
    pub const fn delay(&self) -> Duration {
        self.delay
    }

    /// Whether a client should hear of this policy rather than of `other`: the order of
    /// [`Decision::binding`](tollgate_core::Decision::binding).
    pub(crate) fn binds_before(&self, other: &Self) -> bool {
        if self.is_shadow() != other.is_shadow() {
            return other.is_shadow();
        }
        match (self.allowed, other.allowed) {
            (true, true) => self.remaining < other.remaining,
            (false, false) => match (self.retry_after, other.retry_after) {
                (None, Some(_)) => true,
                (Some(mine), Some(others)) => mine > others,
                (_, None) => false,
            },
            (mine, _) => !mine,
        }
    }
}
