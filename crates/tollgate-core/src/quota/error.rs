//! Why numbers do not make a [`Quota`](super::Quota).

use std::time::Duration;

use super::Quota;

/// Why a typed constructor refused the numbers it was given.
///
/// The value is `Copy` and has no destructor, so a constructor's result can be matched in a `const`.
/// Text is refused with a [`ParseQuotaError`](super::ParseQuotaError), which adds the column.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use tollgate_core::{Quota, QuotaError};
///
/// let error = Quota::new(10, Duration::from_micros(1_500)).unwrap_err();
/// assert_eq!(
///     error,
///     QuotaError::PeriodNotWholeMilliseconds { period: Duration::from_micros(1_500) }
/// );
/// assert_eq!(
///     error.to_string(),
///     "period 1.5ms is not a whole number of milliseconds; expected a multiple of 1 ms"
/// );
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum QuotaError {
    /// The limit is above [`Quota::MAX_LIMIT`].
    #[error("limit {limit} is too large; expected {}", self.expected())]
    LimitTooLarge {
        /// The limit that was given.
        limit: u64,
    },
    /// The period is zero.
    #[error("period is zero; expected {}", self.expected())]
    PeriodZero,
    /// The period is not zero, but below [`Quota::MIN_PERIOD`].
    #[error("period {period:?} is too short; expected {}", self.expected())]
    PeriodTooShort {
        /// The period that was given.
        period: Duration,
    },
    /// The period is above [`Quota::MAX_PERIOD`].
    #[error("period {period:?} is too long; expected {}", self.expected())]
    PeriodTooLong {
        /// The period that was given.
        period: Duration,
    },
    /// The period has a part smaller than a millisecond.
    #[error("period {period:?} is not a whole number of milliseconds; expected {}", self.expected())]
    PeriodNotWholeMilliseconds {
        /// The period that was given.
        period: Duration,
    },
    /// A burst of zero: nothing could ever pass. A limit of zero is the way to block.
    #[error("burst is zero; expected {}", self.expected())]
    BurstZero,
    /// The burst is above [`Quota::MAX_BURST`].
    #[error("burst {burst} is too large; expected {}", self.expected())]
    BurstTooLarge {
        /// The burst that was given.
        burst: u64,
    },
    /// A burst beside a limit of zero: the burst would pass once and never be refilled.
    #[error("limit 0 blocks everything and cannot have a burst; expected {}", self.expected())]
    BurstWhileBlocked,
    /// A list with no quota in it.
    #[error("list of quotas is empty; expected {}", self.expected())]
    EmptyList,
}

impl QuotaError {
    /// What would have been accepted, worded to follow "expected".
    ///
    /// # Examples
    ///
    /// ```
    /// use tollgate_core::QuotaError;
    ///
    /// assert_eq!(QuotaError::PeriodZero.expected(), "at least 1 ms");
    /// ```
    #[must_use]
    pub const fn expected(&self) -> &'static str {
        match self {
            Self::LimitTooLarge { .. } | Self::BurstTooLarge { .. } => "at most 1000000000000",
            Self::PeriodZero | Self::PeriodTooShort { .. } => "at least 1 ms",
            Self::PeriodTooLong { .. } => "at most 400 days (34560000s)",
            Self::PeriodNotWholeMilliseconds { .. } => "a multiple of 1 ms",
            Self::BurstZero => "at least 1, or limit 0 to block everything",
            Self::BurstWhileBlocked => "no burst, or a limit of at least 1",
            Self::EmptyList => "at least one quota",
        }
    }
}

// The figures in `expected` are spelled out; these hold them to the constants.
const _: () =
    assert!(Quota::MAX_LIMIT == 1_000_000_000_000 && Quota::MAX_BURST == Quota::MAX_LIMIT);
const _: () = assert!(Quota::MIN_PERIOD.as_micros() == 1_000);
const _: () =
    assert!(Quota::MAX_PERIOD.as_secs() == 34_560_000 && Quota::MAX_PERIOD.subsec_nanos() == 0);
