//! Quotas: how many units per period, and how many at once.

mod cursor;
mod display;
mod error;
mod list;
mod parse;
mod parse_error;
#[cfg(feature = "serde")]
mod serde;
mod unit;

use std::num::NonZeroU64;
use std::time::Duration;

use crate::algorithm::BucketRule;

pub use error::QuotaError;
pub use list::QuotaList;
pub use parse_error::{ParseQuotaError, ParseQuotaErrorKind};

/// `limit` units per `period`, with an optional `burst`.
///
/// A value of this type is always legal: the limit lies between 0 and [`MAX_LIMIT`](Self::MAX_LIMIT), the
/// period is a whole number of milliseconds between [`MIN_PERIOD`](Self::MIN_PERIOD) and
/// [`MAX_PERIOD`](Self::MAX_PERIOD), and the burst, where there is one, between 1 and
/// [`MAX_BURST`](Self::MAX_BURST). Limit 0 is legal and means that everything is blocked; it has no burst.
///
/// The numbers must be ones that every algorithm counts exactly: with `g` the greatest common divisor of
/// limit and period, in some tick of 1 µs, 10 µs, ... 1 s that divides the period, `burst · period / g` lies
/// within 2^52. Every limit up to 130 000 000 over whole seconds does, and so does a trillion per 400 days; a
/// limit beyond 10^9 with nothing in common with a long period does not.
///
/// Two quotas are equal when limit, period and burst are. `60/minute` and `1/second` are not: they drain
/// at one rate but admit different peaks. A burst equal to the limit says nothing new and is kept as no
/// burst at all.
///
/// # Text
///
/// A quota is read from text with [`str::parse`], and `Display` writes a canonical form that parses back
/// to the same value:
///
/// | text | meaning | canonical form |
/// |---|---|---|
/// | `100/minute`, `100 per minute`, `100 / Min` | 100 each minute | `100/minute` |
/// | `10/15seconds`, `10 per 15 s` | 10 each 15 seconds | `10/15 seconds` |
/// | `20/s burst 100` | 20 each second, 100 at once | `20/second burst 100` |
/// | `10/ms` | 10 each millisecond | `10/ms` |
/// | `0/day` | blocked | `0/day` |
///
/// Units are second, minute, hour, day, week and millisecond, in singular or plural, and
/// `s sec secs m min mins h hr hrs d w ms`, in any case of the letters. Months, years, fractions, signs,
/// separators between digits and leading zeros are refused; a [`ParseQuotaError`] says where and what
/// would be accepted. Several quotas in one text are a [`QuotaList`].
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use tollgate_core::Quota;
///
/// const API: Quota = Quota::per_minute(100);
///
/// assert_eq!(API.limit(), 100);
/// assert_eq!(API.period(), Duration::from_secs(60));
/// assert_eq!(API.capacity(), 100);
///
/// let uploads = Quota::new(3, Duration::from_millis(1_500))?.with_burst(10)?;
/// assert_eq!(uploads.capacity(), 10);
/// # Ok::<(), tollgate_core::QuotaError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Quota {
    limit: u64,
    period_micros: u64,
    /// Never equal to `limit`, so that equal meanings are equal values.
    burst: Option<NonZeroU64>,
}

impl Quota {
    /// The largest limit: 10^12 units.
    pub const MAX_LIMIT: u64 = 1_000_000_000_000;

    /// The largest burst: 10^12 units.
    pub const MAX_BURST: u64 = 1_000_000_000_000;

    /// The shortest period: 1 millisecond, which is also the step of all periods.
    pub const MIN_PERIOD: Duration = Duration::from_millis(1);

    /// The longest period: 400 days, so that a calendar year fits with room to spare.
    pub const MAX_PERIOD: Duration = Duration::from_secs(400 * 86_400);

    /// `limit` units per `period`, without a burst.
    ///
    /// # Errors
    ///
    /// [`QuotaError`] when `limit` is above [`MAX_LIMIT`](Self::MAX_LIMIT), or when `period` is outside
    /// [`MIN_PERIOD`](Self::MIN_PERIOD) to [`MAX_PERIOD`](Self::MAX_PERIOD) or not a whole number of
    /// milliseconds, or when the two cannot be counted exactly.
    ///
    /// # Examples
    ///
    /// The constructor is `const`, so a mistake in a constant stops the build:
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate_core::Quota;
    ///
    /// const LOGIN: Quota = match Quota::new(5, Duration::from_secs(15 * 60)) {
    ///     Ok(quota) => quota,
    ///     Err(_) => panic!("not a quota"),
    /// };
    /// assert_eq!(LOGIN.to_string(), "5/15 minutes");
    /// ```
    pub const fn new(limit: u64, period: Duration) -> Result<Self, QuotaError> {
        if let Err(error) = Self::check_limit(limit) {
            return Err(error);
        }
        if let Err(error) = Self::check_period(period) {
            return Err(error);
        }
        Self::from_checked(limit, period).exact()
    }

    /// `limit` units per `period` with room for `burst` units at once.
    ///
    /// The same as [`new`](Self::new) and [`with_burst`](Self::with_burst) in one, also where `limit` units at once
    /// would be too many to be counted exactly and only the burst makes the quota legal.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new) and [`with_burst`](Self::with_burst).
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate_core::Quota;
    ///
    /// const MONTH: Duration = Duration::from_secs(30 * 86_400);
    /// assert!(Quota::new(999_999_999_989, MONTH).is_err());
    /// let quota = Quota::new_with_burst(999_999_999_989, MONTH, 1_000)?;
    /// assert_eq!(quota.to_string(), "999999999989/30 days burst 1000");
    /// # Ok::<(), tollgate_core::QuotaError>(())
    /// ```
    pub const fn new_with_burst(
        limit: u64,
        period: Duration,
        burst: u64,
    ) -> Result<Self, QuotaError> {
        if let Err(error) = Self::check_limit(limit) {
            return Err(error);
        }
        if let Err(error) = Self::check_period(period) {
            return Err(error);
        }
        Self::from_checked(limit, period).with_burst(burst)
    }

    /// The same quota if every algorithm counts it exactly; the bucket is the one that may not.
    const fn exact(self) -> Result<Self, QuotaError> {
        let capacity = self.capacity();
        if BucketRule::new(self.limit, self.period_micros, capacity).is_none() {
            return Err(QuotaError::TooFine {
                limit: self.limit,
                period: self.period(),
                capacity,
            });
        }
        Ok(self)
    }

    const fn check_limit(limit: u64) -> Result<(), QuotaError> {
        if limit > Self::MAX_LIMIT {
            return Err(QuotaError::LimitTooLarge { limit });
        }
        Ok(())
    }

    const fn check_period(period: Duration) -> Result<(), QuotaError> {
        if period.is_zero() {
            return Err(QuotaError::PeriodZero);
        }
        if period.as_nanos() < Self::MIN_PERIOD.as_nanos() {
            return Err(QuotaError::PeriodTooShort { period });
        }
        if period.as_nanos() > Self::MAX_PERIOD.as_nanos() {
            return Err(QuotaError::PeriodTooLong { period });
        }
        if !period.subsec_nanos().is_multiple_of(1_000_000) {
            return Err(QuotaError::PeriodNotWholeMilliseconds { period });
        }
        Ok(())
    }

    /// A quota from a limit and a period that the two checks above have passed.
    const fn from_checked(limit: u64, period: Duration) -> Self {
        let period_micros = period.as_secs() * 1_000_000 + period.subsec_micros() as u64;
        Self {
            limit,
            period_micros,
            burst: None,
        }
    }

    /// `limit` units per second.
    ///
    /// # Examples
    ///
    /// ```
    /// use tollgate_core::Quota;
    ///
    /// const SEARCH: Quota = Quota::per_second(5);
    /// assert_eq!(SEARCH.to_string(), "5/second");
    /// ```
    #[must_use]
    pub const fn per_second(limit: u32) -> Self {
        Self::per(limit, 1)
    }

    /// `limit` units per minute.
    ///
    /// # Examples
    ///
    /// ```
    /// use tollgate_core::Quota;
    ///
    /// assert_eq!(Quota::per_minute(100).to_string(), "100/minute");
    /// ```
    #[must_use]
    pub const fn per_minute(limit: u32) -> Self {
        Self::per(limit, 60)
    }

    /// `limit` units per hour.
    ///
    /// # Examples
    ///
    /// ```
    /// use tollgate_core::Quota;
    ///
    /// assert_eq!(Quota::per_hour(1_000).to_string(), "1000/hour");
    /// ```
    #[must_use]
    pub const fn per_hour(limit: u32) -> Self {
        Self::per(limit, 3_600)
    }

    /// `limit` units per day of 24 hours.
    ///
    /// # Examples
    ///
    /// ```
    /// use tollgate_core::Quota;
    ///
    /// assert_eq!(Quota::per_day(50_000).to_string(), "50000/day");
    /// ```
    #[must_use]
    pub const fn per_day(limit: u32) -> Self {
        Self::per(limit, 86_400)
    }

    /// `limit` units per week of seven days.
    ///
    /// # Examples
    ///
    /// ```
    /// use tollgate_core::Quota;
    ///
    /// assert_eq!(Quota::per_week(7).to_string(), "7/week");
    /// ```
    #[must_use]
    pub const fn per_week(limit: u32) -> Self {
        Self::per(limit, 7 * 86_400)
    }

    /// `seconds` comes from the callers above, and even `u32::MAX` in a week stays exact, so this cannot fail.
    const fn per(limit: u32, seconds: u64) -> Self {
        Self {
            limit: limit as u64,
            period_micros: seconds * 1_000_000,
            burst: None,
        }
    }

    /// The same quota with room for `burst` units at once, in place of any burst it had.
    ///
    /// The burst may be smaller or larger than the limit. A burst equal to the limit is what a quota
    /// without one admits, and is stored so.
    ///
    /// # Errors
    ///
    /// [`QuotaError`] when `burst` is 0 or above [`MAX_BURST`](Self::MAX_BURST), or when the limit is 0:
    /// such a burst would pass once and never be refilled, which is neither blocked nor limited. Also when
    /// so large a burst cannot be counted exactly beside this limit and period.
    ///
    /// # Examples
    ///
    /// ```
    /// use tollgate_core::{Quota, QuotaError};
    ///
    /// let quota = Quota::per_second(20).with_burst(100)?;
    /// assert_eq!(quota.to_string(), "20/second burst 100");
    /// assert_eq!(Quota::per_second(0).with_burst(5), Err(QuotaError::BurstWhileBlocked));
    /// # Ok::<(), QuotaError>(())
    /// ```
    pub const fn with_burst(self, burst: u64) -> Result<Self, QuotaError> {
        let Some(size) = NonZeroU64::new(burst) else {
            return Err(QuotaError::BurstZero);
        };
        if burst > Self::MAX_BURST {
            return Err(QuotaError::BurstTooLarge { burst });
        }
        if self.limit == 0 {
            return Err(QuotaError::BurstWhileBlocked);
        }
        let burst = if burst == self.limit {
            None
        } else {
            Some(size)
        };
        Self { burst, ..self }.exact()
    }

    /// Units per period; 0 means that everything is blocked.
    ///
    /// # Examples
    ///
    /// ```
    /// use tollgate_core::Quota;
    ///
    /// assert_eq!(Quota::per_day(0).limit(), 0);
    /// ```
    #[must_use]
    pub const fn limit(&self) -> u64 {
        self.limit
    }

    /// The period, a whole number of milliseconds.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate_core::Quota;
    ///
    /// assert_eq!(Quota::per_hour(1).period(), Duration::from_secs(3_600));
    /// ```
    #[must_use]
    pub const fn period(&self) -> Duration {
        Duration::from_micros(self.period_micros)
    }

    /// The period in microseconds, the unit in which every algorithm counts time.
    ///
    /// # Examples
    ///
    /// ```
    /// use tollgate_core::Quota;
    ///
    /// assert_eq!(Quota::per_second(1).period_micros(), 1_000_000);
    /// ```
    #[must_use]
    pub const fn period_micros(&self) -> u64 {
        self.period_micros
    }

    /// The burst, where it differs from the limit.
    ///
    /// # Examples
    ///
    /// ```
    /// use tollgate_core::Quota;
    ///
    /// assert_eq!(Quota::per_second(20).burst(), None);
    /// assert_eq!(Quota::per_second(20).with_burst(100)?.burst(), Some(100));
    /// assert_eq!(Quota::per_second(20).with_burst(20)?.burst(), None);
    /// # Ok::<(), tollgate_core::QuotaError>(())
    /// ```
    #[must_use]
    pub const fn burst(&self) -> Option<u64> {
        match self.burst {
            Some(burst) => Some(burst.get()),
            None => None,
        }
    }

    /// How many units fit at once: the burst, or the limit where there is none.
    ///
    /// # Examples
    ///
    /// ```
    /// use tollgate_core::Quota;
    ///
    /// assert_eq!(Quota::per_second(20).capacity(), 20);
    /// assert_eq!(Quota::per_second(20).with_burst(100)?.capacity(), 100);
    /// # Ok::<(), tollgate_core::QuotaError>(())
    /// ```
    #[must_use]
    pub const fn capacity(&self) -> u64 {
        match self.burst {
            Some(burst) => burst.get(),
            None => self.limit,
        }
    }
}
