//! What one policy said, in the numbers that headers carry.

use bytes::Bytes;

use super::{Headers, delay_seconds};
use crate::status::PolicyStatus;

/// One policy's place in the headers.
#[derive(Clone, Debug)]
pub(super) struct ServiceLimit {
    pub(super) status: PolicyStatus,
    pub(super) headers: Headers,
    pub(super) partition_key: Option<Bytes>,
    /// The instant at which the key is as good as never seen, in seconds since the epoch, rounded up.
    pub(super) reset_seconds: u64,
}

impl ServiceLimit {
    /// `None` where no store answered: then no number is known.
    pub(super) fn of(
        status: &PolicyStatus,
        headers: &Headers,
        partition_key: Option<Bytes>,
    ) -> Option<Self> {
        Some(Self {
            reset_seconds: status.reset_at()?.as_secs_ceil(),
            status: status.clone(),
            headers: headers.clone(),
            partition_key,
        })
    }

    /// What fits at once, which is also what `q` says.
    pub(super) fn capacity(&self) -> u64 {
        self.status.policy().quota().capacity()
    }

    /// The seconds in which [`capacity`](Self::capacity) units are given back, rounded up.
    ///
    /// Without a burst this is the period. With one it is the time in which the burst refills: so a client that sends
    /// `q` in every `w` keeps to the rate, and never sends more at once than the bucket holds.
    pub(super) fn window_seconds(&self) -> u64 {
        let quota = self.status.policy().quota();
        let period = u128::from(quota.period_micros());
        let micros = match quota.burst() {
            None => period,
            Some(burst) => (u128::from(burst) * period).div_ceil(u128::from(quota.limit())),
        };
        u64::try_from(micros.div_ceil(1_000_000)).unwrap_or(u64::MAX)
    }

    /// The seconds within which no more than `r` units can be used, rounded up and at least
    /// 1; `None` where no wait brings more.
    pub(super) fn effective_window_seconds(&self) -> Option<u64> {
        if self.capacity() == 0 {
            return None;
        }
        self.status.more_after().map(delay_seconds)
    }
}
