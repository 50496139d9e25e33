//! How much a deny cache remembers, and for how long.

use std::time::Duration;

use tollgate_core::{Error, ErrorKind, Result};

/// How much a [`DenyCache`](crate::DenyCache) remembers, and for how long.
///
/// ```
/// use std::time::Duration;
/// use tollgate_layers::DenyCacheOptions;
///
/// let small = DenyCacheOptions::new().capacity(1_000).max_age(Duration::from_millis(200));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct DenyCacheOptions {
    name: &'static str,
    capacity: u64,
    max_age: Duration,
}

impl DenyCacheOptions {
    /// The most keys remembered unless set: some 45 MB when all of them are denied.
    pub const CAPACITY: u64 = 100_000;
    /// How long a denial answers unless set: one second.
    ///
    /// A client that is denied a hundred thousand times a second then costs the store one call a second, and what
    /// another process resets or gives back is seen after a second at the latest.
    pub const MAX_AGE: Duration = Duration::from_secs(1);
    /// The longest that a denial may be set to answer. Nobody waits longer for a reset to take effect.
    pub const MAX_MAX_AGE: Duration = Duration::from_secs(60 * 60);

    /// The options that hold unless set.
    pub const fn new() -> Self {
        Self {
            name: crate::DEFAULT_NAME,
            capacity: Self::CAPACITY,
            max_age: Self::MAX_AGE,
        }
    }

    /// Names the store in metrics, `"store"` unless set.
    pub const fn name(self, name: &'static str) -> Self {
        Self { name, ..self }
    }

    /// Remembers at most `keys` denied keys, at least 1. The ones asked for least often leave first.
    pub const fn capacity(self, keys: u64) -> Self {
        Self {
            capacity: keys,
            ..self
        }
    }

    /// Asks the store again once a denial is `max_age` old: 1 ms to [`MAX_MAX_AGE`](Self::MAX_MAX_AGE).
    pub const fn max_age(self, max_age: Duration) -> Self {
        Self { max_age, ..self }
    }

    pub(super) fn check(&self) -> Result<()> {
        if self.capacity == 0 {
            return Err(invalid(
                "a deny cache holds at least 1 key, not 0".to_owned(),
            ));
        }
        let (least, most) = (Duration::from_millis(1), Self::MAX_MAX_AGE);
        if self.max_age < least || self.max_age > most {
            return Err(invalid(format!(
                "the greatest age of a denial lies between {least:?} and {most:?}, not at {:?}",
                self.max_age
            )));
        }
        Ok(())
    }

    pub(super) const fn store_name(&self) -> &'static str {
        self.name
    }

    pub(super) const fn max_keys(&self) -> u64 {
        self.capacity
    }

    pub(super) const fn greatest_age(&self) -> Duration {
        self.max_age
    }
}

impl Default for DenyCacheOptions {
    /// [`new`](Self::new).
    fn default() -> Self {
        Self::new()
    }
}

fn invalid(message: String) -> Error {
    Error::new(ErrorKind::InvalidInput, message)
}
