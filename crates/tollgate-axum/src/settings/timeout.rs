//! How long the store may take, as text.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use super::error::ValueError;

/// A duration that a call to a store may be bounded by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Timeout(Duration);

impl Timeout {
    const MIN: Duration = Duration::from_millis(1);
    const MAX: Duration = Duration::from_secs(60 * 60);
}

impl FromStr for Timeout {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        let timeout = humantime::parse_duration(text.trim())
            .map_err(|_| ValueError::NotADuration(text.to_owned()))?;
        if (Self::MIN..=Self::MAX).contains(&timeout) {
            return Ok(Self(timeout));
        }
        Err(ValueError::TimeoutOutOfRange(text.to_owned()))
    }
}

impl From<Timeout> for Duration {
    fn from(timeout: Timeout) -> Self {
        timeout.0
    }
}

impl fmt::Display for Timeout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        humantime::format_duration(self.0).fmt(f)
    }
}
