//! A policy: a name, an algorithm and a quota.

#[cfg(feature = "serde")]
mod serde;

use std::fmt;
use std::sync::Arc;

use crate::algorithm::{
    Algorithm, BucketRule, FixedWindowRule, Rule, SlidingLogRule, SlidingWindowRule,
};
use crate::error::{Error, ErrorKind, Result};
use crate::limiter::FailureMode;
use crate::quota::Quota;

/// A name, an [`Algorithm`] and a [`Quota`]: what a limiter judges by, and what the `RateLimit-Policy` field lists.
///
/// Immutable and cheap to clone. Everything the algorithm needs is worked out here, once.
///
/// ```
/// use tollgate_core::{Algorithm, Policy, Quota};
///
/// let login = Policy::new("login", Algorithm::SlidingLog, "5/15 minutes".parse()?)?;
/// assert_eq!(login.to_string(), "login: sliding-log 5/15 minutes");
///
/// // A bare quota is a token bucket named "default": ten at once, then one every six seconds.
/// let default = Policy::from(Quota::per_minute(10));
/// assert_eq!(default.algorithm(), Algorithm::TokenBucket);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    rule: Rule,
    quota: Quota,
    name: Arc<str>,
    algorithm: Algorithm,
    utc_offset_minutes: Option<i32>,
    failure_mode: Option<FailureMode>,
    shadow: bool,
}

impl Policy {
    /// The name of the policy that a bare quota becomes.
    pub const DEFAULT_NAME: &str = "default";
    /// The longest name, in bytes.
    pub const MAX_NAME: usize = 128;

    /// A policy of the given name, algorithm and quota.
    ///
    /// Names are what headers and problem documents show: 1 to [`MAX_NAME`](Self::MAX_NAME) printable ASCII characters
    /// (RFC 9651, section 3.3.3).
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`] for a name that breaks the rule above, or for a quota with a burst where the
    /// algorithm has none (the windows and the log).
    pub fn new(name: &str, algorithm: Algorithm, quota: Quota) -> Result<Self> {
        check_name(name)?;
        check_burst(algorithm, quota)?;
        Ok(Self {
            rule: rule(algorithm, &quota, None),
            quota,
            name: Arc::from(name),
            algorithm,
            utc_offset_minutes: None,
            failure_mode: None,
            shadow: false,
        })
    }

    /// Makes a fixed window begin at multiples of its period in the calendar, instead of at the first hit.
    ///
    /// `utc_offset_minutes` is how far local time is ahead of UTC: `120` for +02:00. A window of whole weeks begins on
    /// Monday. Daylight saving is not followed: a day is 24 hours.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`] for any algorithm but the fixed window, or an offset beyond 18 hours either way.
    pub fn aligned(self, utc_offset_minutes: i32) -> Result<Self> {
        if self.algorithm != Algorithm::FixedWindow {
            return Err(Error::new(
                ErrorKind::InvalidInput,
                format!(
                    "only a fixed-window can be aligned to the calendar, not a {}",
                    self.algorithm
                ),
            ));
        }
        if utc_offset_minutes.unsigned_abs() > 18 * 60 {
            return Err(Error::new(
                ErrorKind::InvalidInput,
                format!(
                    "a UTC offset lies between -1080 and 1080 minutes, not at {utc_offset_minutes}"
                ),
            ));
        }
        Ok(Self {
            rule: rule(self.algorithm, &self.quota, Some(utc_offset_minutes)),
            utc_offset_minutes: Some(utc_offset_minutes),
            ..self
        })
    }

    /// The same policy with another quota: everything else stays.
    ///
    /// # Errors
    /// As [`new`](Self::new), for a quota with a burst where the algorithm has none.
    pub fn with_quota(self, quota: Quota) -> Result<Self> {
        check_burst(self.algorithm, quota)?;
        Ok(Self {
            rule: rule(self.algorithm, &quota, self.utc_offset_minutes),
            quota,
            ..self
        })
    }

    /// What this policy answers when the store cannot, in place of the limiter's own mode.
    #[must_use]
    pub fn on_failure(self, mode: FailureMode) -> Self {
        Self {
            failure_mode: Some(mode),
            ..self
        }
    }

    /// Puts this policy in shadow mode: it is judged and counted, and never enforced.
    ///
    /// To learn what a limit would do before it does it. The limiter charges a policy in shadow mode whenever the
    /// enforced ones admit the hit and it has room, and reports where it would have denied
    /// ([`Decision::shadow_violated`](crate::Decision::shadow_violated)); nobody is denied by it. Its counter is the one
    /// it has when it is enforced: whoever takes the mode away goes on from there.
    ///
    /// The price is one more round trip per hit for each policy in shadow mode.
    ///
    /// ```
    /// use tollgate_core::{Algorithm, Policy};
    ///
    /// let login = Policy::new("login", Algorithm::SlidingLog, "5/15 minutes".parse()?)?.shadow();
    /// assert_eq!(login.to_string(), "login: sliding-log 5/15 minutes (shadow)");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn shadow(self) -> Self {
        Self {
            shadow: true,
            ..self
        }
    }

    /// The name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The algorithm.
    #[must_use]
    pub const fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// The quota.
    #[must_use]
    pub const fn quota(&self) -> Quota {
        self.quota
    }

    /// The algorithm's numbers for this quota.
    #[must_use]
    #[inline]
    pub const fn rule(&self) -> &Rule {
        &self.rule
    }

    /// How far the calendar of an aligned fixed window is ahead of UTC, in minutes.
    #[must_use]
    pub const fn utc_offset_minutes(&self) -> Option<i32> {
        self.utc_offset_minutes
    }

    /// What this policy answers when the store cannot; `None` leaves it to the limiter.
    #[must_use]
    pub const fn failure_mode(&self) -> Option<FailureMode> {
        self.failure_mode
    }

    /// What this policy answers when the store cannot, where the limiter's mode is `mode`.
    pub(crate) fn failure_mode_or(&self, mode: FailureMode) -> FailureMode {
        self.failure_mode.unwrap_or(mode)
    }

    /// Whether this policy is judged and counted, but not enforced.
    #[must_use]
    pub const fn is_shadow(&self) -> bool {
        self.shadow
    }
}

impl From<Quota> for Policy {
    /// A token bucket named [`DEFAULT_NAME`](Policy::DEFAULT_NAME): the burst at once, and the refill on top.
    fn from(quota: Quota) -> Self {
        let algorithm = Algorithm::TokenBucket;
        Self {
            rule: rule(algorithm, &quota, None),
            quota,
            name: Arc::from(Self::DEFAULT_NAME),
            algorithm,
            utc_offset_minutes: None,
            failure_mode: None,
            shadow: false,
        }
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} {}", self.name, self.algorithm, self.quota)?;
        if self.shadow {
            f.write_str(" (shadow)")?;
        }
        Ok(())
    }
}

fn check_name(name: &str) -> Result<()> {
    if name.is_empty() || name.len() > Policy::MAX_NAME {
        return Err(Error::new(
            ErrorKind::InvalidInput,
            format!(
                "a policy name has 1 to {} characters, not {}",
                Policy::MAX_NAME,
                name.len()
            ),
        ));
    }
    match name.chars().position(|c| !matches!(c, ' '..='~')) {
        None => Ok(()),
        Some(index) => Err(Error::new(
            ErrorKind::InvalidInput,
            format!(
                "character {} of the policy name {name:?} is not printable ASCII",
                index + 1
            ),
        )),
    }
}

fn check_burst(algorithm: Algorithm, quota: Quota) -> Result<()> {
    if let (
        Algorithm::FixedWindow | Algorithm::SlidingWindow | Algorithm::SlidingLog,
        Some(burst),
    ) = (algorithm, quota.burst())
    {
        return Err(Error::new(
            ErrorKind::InvalidInput,
            format!(
                "a {algorithm} has no burst, but the quota asks for {burst}; \
                 leave it out or use token-bucket, leaky-bucket or gcra"
            ),
        ));
    }
    Ok(())
}

fn rule(algorithm: Algorithm, quota: &Quota, utc_offset_minutes: Option<i32>) -> Rule {
    let (limit, period) = (quota.limit(), quota.period_micros());
    match algorithm {
        Algorithm::FixedWindow => {
            let phase = utc_offset_minutes.map(|minutes| calendar_phase(period, minutes));
            Rule::FixedWindow(FixedWindowRule::new(limit, period, phase))
        }
        Algorithm::SlidingWindow => Rule::SlidingWindow(SlidingWindowRule::new(limit, period)),
        Algorithm::SlidingLog => Rule::SlidingLog(SlidingLogRule::new(limit, period)),
        Algorithm::TokenBucket | Algorithm::LeakyBucket | Algorithm::Gcra => {
            let bucket = BucketRule::new(limit, period, quota.capacity());
            Rule::Bucket(bucket.expect("a quota exists only if a bucket keeps it exactly"))
        }
    }
}

/// Where in a period since the Unix epoch the calendar's windows begin, in microseconds.
fn calendar_phase(period: u64, utc_offset_minutes: i32) -> u64 {
    const MINUTE: i64 = 60_000_000;
    const DAY: i64 = 24 * 60 * MINUTE;
    // The epoch was a Thursday; the first Monday came four days later.
    let first_monday = 4 * DAY;
    let period = period.cast_signed();
    let anchor = if period % (7 * DAY) == 0 {
        first_monday
    } else {
        0
    };
    (anchor - i64::from(utc_offset_minutes) * MINUTE)
        .rem_euclid(period)
        .cast_unsigned()
}
