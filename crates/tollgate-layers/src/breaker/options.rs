//! When a breaker opens and how often it probes.

use std::time::Duration;

use tollgate_core::{Error, ErrorKind, Result};

/// When a [`Breaker`](crate::Breaker) opens, and how often it probes while it is open.
///
/// ```
/// use std::time::Duration;
/// use tollgate_layers::BreakerOptions;
///
/// let patient = BreakerOptions::new().failures(20).backoff(Duration::from_secs(1), Duration::from_secs(30));
/// let named = patient.name("redis");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct BreakerOptions {
    name: &'static str,
    failures: u32,
    first_backoff: Duration,
    longest_backoff: Duration,
}

impl BreakerOptions {
    /// Failures in a row that open the breaker unless set.
    ///
    /// One lost packet or one restarted connection must not take the store away from everybody, so it takes more than
    /// two. With the usual timeout of 100 ms, a lone caller has waited half a second after five.
    pub const FAILURES: u32 = 5;
    /// The backoff before the first probe unless set.
    ///
    /// Most outages are a failover or a restart, which take seconds; a probe costs one request the wait for a timeout.
    pub const FIRST_BACKOFF: Duration = Duration::from_millis(500);
    /// The longest backoff between probes unless set: limits are enforced again at most ten seconds after the store is
    /// back, and one request in ten seconds waits for nothing.
    pub const LONGEST_BACKOFF: Duration = Duration::from_secs(10);
    /// A backoff lies between [`Timeout::MIN`](crate::Timeout::MIN), the resolution of the timer, and this.
    pub const MAX_BACKOFF: Duration = Duration::from_secs(60 * 60);

    const MIN_BACKOFF: Duration = Duration::from_millis(1);

    /// The options that hold unless set.
    pub const fn new() -> Self {
        Self {
            name: crate::DEFAULT_NAME,
            failures: Self::FAILURES,
            first_backoff: Self::FIRST_BACKOFF,
            longest_backoff: Self::LONGEST_BACKOFF,
        }
    }

    /// Names the store in errors, events and metrics, `"store"` unless set.
    pub const fn name(self, name: &'static str) -> Self {
        Self { name, ..self }
    }

    /// Opens after `failures` in a row, at least 1.
    pub const fn failures(self, failures: u32) -> Self {
        Self { failures, ..self }
    }

    /// Waits `first` before the first probe, and twice as long after each probe that fails, up to `longest`.
    ///
    /// What is really waited is jittered: anything from half of that to all of it, so that processes that lost the
    /// store at one instant do not come back to it at one instant.
    pub const fn backoff(self, first: Duration, longest: Duration) -> Self {
        Self {
            first_backoff: first,
            longest_backoff: longest,
            ..self
        }
    }

    pub(super) fn check(&self) -> Result<()> {
        let (first, longest) = (self.first_backoff, self.longest_backoff);
        if self.failures == 0 {
            return Err(invalid(
                "a breaker opens after at least 1 failure, not after 0".to_owned(),
            ));
        }
        let (least, most) = (Self::MIN_BACKOFF, Self::MAX_BACKOFF);
        if first < least || longest > most {
            return Err(invalid(format!(
                "the backoff of a breaker lies between {least:?} and {most:?}, not between {first:?} and {longest:?}"
            )));
        }
        if first > longest {
            return Err(invalid(format!(
                "the first backoff of a breaker is not longer than the longest, but {first:?} is longer than {longest:?}"
            )));
        }
        Ok(())
    }

    pub(super) const fn store_name(&self) -> &'static str {
        self.name
    }

    pub(super) const fn threshold(&self) -> u32 {
        self.failures
    }

    pub(crate) const fn longest_backoff(&self) -> Duration {
        self.longest_backoff
    }

    /// How long to hold a probe's place for a probe that is never done.
    pub(super) fn lease(&self) -> u64 {
        micros(self.longest_backoff)
    }

    /// How long to wait after `failed` probes, in microseconds, jittered.
    pub(super) fn wait(&self, failed: u32) -> u64 {
        let doubled = 1_u64.checked_shl(failed).unwrap_or(u64::MAX);
        let most = micros(self.first_backoff)
            .saturating_mul(doubled)
            .min(micros(self.longest_backoff));
        fastrand::u64(most / 2..=most)
    }
}

impl Default for BreakerOptions {
    /// [`new`](Self::new).
    fn default() -> Self {
        Self::new()
    }
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

fn invalid(message: String) -> Error {
    Error::new(ErrorKind::InvalidInput, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MILLI: Duration = Duration::from_millis(1);

    #[test]
    fn waits_double_up_to_the_longest_and_keep_at_least_half() {
        let options = BreakerOptions::new().backoff(100 * MILLI, 1_000 * MILLI);
        for (failed, most) in [
            (0, 100),
            (1, 200),
            (2, 400),
            (3, 800),
            (4, 1_000),
            (63, 1_000),
            (64, 1_000),
            (u32::MAX, 1_000),
        ] {
            for _ in 0..200 {
                let wait = Duration::from_micros(options.wait(failed));
                assert!(
                    (most / 2 * MILLI..=most * MILLI).contains(&wait),
                    "{failed} failed probes, {wait:?}"
                );
            }
        }
    }

    #[test]
    fn waits_are_not_all_alike() {
        let options = BreakerOptions::new();
        let first = options.wait(0);
        assert!((0..200).any(|_| options.wait(0) != first));
    }

    #[test]
    fn options_that_make_no_sense_are_refused_and_say_what_would() {
        let longest = BreakerOptions::MAX_BACKOFF;
        for (options, part) in [
            (BreakerOptions::new().failures(0), "at least 1 failure"),
            (
                BreakerOptions::new().backoff(Duration::ZERO, MILLI),
                "between 1ms and 3600s",
            ),
            (
                BreakerOptions::new().backoff(MILLI, longest + MILLI),
                "between 1ms and 3600s",
            ),
            (
                BreakerOptions::new().backoff(3 * MILLI, 2 * MILLI),
                "3ms is longer than 2ms",
            ),
        ] {
            let error = options.check().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput);
            assert!(error.to_string().contains(part), "{error}");
        }
        assert!(
            BreakerOptions::new()
                .backoff(MILLI, longest)
                .check()
                .is_ok()
        );
        assert!(BreakerOptions::default().check().is_ok());
    }
}
