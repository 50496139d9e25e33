//! The canonical spelling, which parses back to the same value.

use std::fmt;

use super::Quota;

/// The units of the canonical spelling with their length in microseconds, longest first.
const UNITS: [(&str, u64); 5] = [
    ("week", 7 * 86_400_000_000),
    ("day", 86_400_000_000),
    ("hour", 3_600_000_000),
    ("minute", 60_000_000),
    ("second", 1_000_000),
];

/// The canonical spelling: the longest unit that divides the period, and the burst where there is one.
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
        write_period(f, self.period_micros)?;
        match self.burst {
            Some(burst) => write!(f, " burst {burst}"),
            None => Ok(()),
        }
    }
}

fn write_period(f: &mut fmt::Formatter<'_>, micros: u64) -> fmt::Result {
    let unit = UNITS
        .into_iter()
        .find(|(_, length)| micros.is_multiple_of(*length));
    match unit {
        Some((name, length)) if micros == length => f.write_str(name),
        Some((name, length)) => write!(f, "{} {name}s", micros / length),
        None if micros == 1_000 => f.write_str("ms"),
        None => write!(f, "{} ms", micros / 1_000),
    }
}
