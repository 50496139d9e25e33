//! Instants as every store sees them: whole microseconds since the Unix epoch.

use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::error::{Error, ErrorKind, Result};

/// An instant in whole microseconds since the Unix epoch.
///
/// The range ends at 8 · 10^15 microseconds (the year 2223). That leaves a margin of 31 years below 2^53, so an
/// instant plus any legal period is still exact in a store whose numbers are doubles.
///
/// ```
/// use std::time::Duration;
/// use tollgate_core::Timestamp;
///
/// let start = Timestamp::from_micros(1_700_000_000_000_000)?;
/// assert_eq!((start + Duration::from_millis(5)).as_micros(), 1_700_000_000_005_000);
/// # Ok::<(), tollgate_core::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(u64);

impl Timestamp {
    /// 1970-01-01T00:00:00Z.
    pub const EPOCH: Self = Self(0);
    /// The last instant a store has to handle.
    pub const MAX: Self = Self(8_000_000_000_000_000);

    /// An instant from microseconds since the Unix epoch.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`] beyond [`Timestamp::MAX`].
    pub fn from_micros(micros: u64) -> Result<Self> {
        if micros > Self::MAX.0 {
            return Err(Error::new(
                ErrorKind::InvalidInput,
                format!(
                    "{micros} microseconds lie beyond the last instant, {}",
                    Self::MAX.0
                ),
            ));
        }
        Ok(Self(micros))
    }

    /// An instant from microseconds since the Unix epoch, moved to [`Timestamp::MAX`] if it lies beyond.
    ///
    /// For clocks, which may not fail: a clock past the range stands still at its end.
    #[must_use]
    #[inline]
    pub const fn saturating_from_micros(micros: u64) -> Self {
        if micros > Self::MAX.0 {
            Self::MAX
        } else {
            Self(micros)
        }
    }

    /// Microseconds since the Unix epoch.
    #[must_use]
    #[inline]
    pub const fn as_micros(self) -> u64 {
        self.0
    }

    /// Whole seconds since the Unix epoch, rounded up: an `X-RateLimit-Reset` never names an instant that is too early.
    #[must_use]
    pub const fn as_secs_ceil(self) -> u64 {
        self.0.div_ceil(1_000_000)
    }

    /// The time from `earlier` to `self`; zero if `earlier` is later.
    #[must_use]
    pub const fn saturating_since(self, earlier: Self) -> Duration {
        Duration::from_micros(self.0.saturating_sub(earlier.0))
    }
}

impl std::ops::Add<Duration> for Timestamp {
    type Output = Self;

    /// The instant `rhs` later, whole microseconds; stays at [`Timestamp::MAX`] if that lies beyond.
    fn add(self, rhs: Duration) -> Self {
        let micros = u64::try_from(rhs.as_micros()).unwrap_or(u64::MAX);
        Self::saturating_from_micros(self.0.saturating_add(micros))
    }
}

impl TryFrom<SystemTime> for Timestamp {
    type Error = Error;

    /// # Errors
    /// [`ErrorKind::InvalidInput`] before the epoch or beyond [`Timestamp::MAX`].
    fn try_from(time: SystemTime) -> Result<Self> {
        let since_epoch = time.duration_since(UNIX_EPOCH).map_err(|before| {
            Error::new(
                ErrorKind::InvalidInput,
                "the instant lies before 1970-01-01",
            )
            .with_source(before)
        })?;
        Self::from_micros(u64::try_from(since_epoch.as_micros()).unwrap_or(u64::MAX))
    }
}

impl fmt::Display for Timestamp {
    /// Seconds since the epoch with six decimals.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:06}", self.0 / 1_000_000, self.0 % 1_000_000)
    }
}
