//! The canonical spelling, which parses back to the same value.

use std::fmt;

use super::Quota;
use super::unit::UNITS;

/// The canonical spelling: the longest unit that divides the period, and the burst where there is one.
///
/// It parses back to the same value for every quota.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use tollgate_core::Quota;
///
/// assert_eq!(Quota::per_minute(100).to_string(), "100/minute");
/// assert_eq!(Quota::new(10, Duration::from_secs(15))?.to_string(), "10/15 seconds");
/// assert_eq!(Quota::new(3, Duration::from_millis(1_500))?.to_string(), "3/1500 ms");
/// assert_eq!(Quota::per_second(20).with_burst(100)?.to_string(), "20/second burst 100");
/// # Ok::<(), tollgate_core::QuotaError>(())
/// ```
impl fmt::Display for Quota {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/", self.limit)?;
        write_period(f, self.period_micros / 1_000)?;
        match self.burst {
            Some(burst) => write!(f, " burst {burst}"),
            None => Ok(()),
        }
    }
}

fn write_period(f: &mut fmt::Formatter<'_>, millis: u64) -> fmt::Result {
    // The last unit is one millisecond and divides every period.
    for unit in &UNITS {
        if millis == unit.millis {
            return f.write_str(unit.singular);
        }
        if millis.is_multiple_of(unit.millis) {
            return write!(f, "{} {}", millis / unit.millis, unit.plural);
        }
    }
    Ok(())
}
