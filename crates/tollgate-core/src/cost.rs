//! How many units one hit takes.

use std::fmt;
use std::num::NonZeroU64;

use crate::error::{Error, ErrorKind, Result};

/// The units one hit takes, at least 1.
///
/// There is no upper end: a cost that can never fit is denied as *never*, it is not an error.
///
/// ```
/// use tollgate_core::{Cost, ErrorKind};
///
/// assert_eq!(Cost::new(5)?.get(), 5);
/// assert_eq!(Cost::new(0).unwrap_err().kind(), ErrorKind::InvalidInput);
/// # Ok::<(), tollgate_core::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cost(NonZeroU64);

impl Cost {
    /// The cost of an ordinary hit.
    pub const ONE: Self = Self(NonZeroU64::MIN);

    /// A cost of `units`.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`] for zero: asking without taking is what `peek` is for.
    #[inline]
    pub fn new(units: u64) -> Result<Self> {
        match NonZeroU64::new(units) {
            Some(units) => Ok(Self(units)),
            None => Err(Error::new(
                ErrorKind::InvalidInput,
                "a cost is at least 1; to look without taking anything, use peek",
            )),
        }
    }

    /// The units.
    #[must_use]
    #[inline]
    pub const fn get(self) -> u64 {
        self.0.get()
    }
}

impl Default for Cost {
    fn default() -> Self {
        Self::ONE
    }
}

impl From<NonZeroU64> for Cost {
    fn from(units: NonZeroU64) -> Self {
        Self(units)
    }
}

impl TryFrom<u64> for Cost {
    type Error = Error;

    fn try_from(units: u64) -> Result<Self> {
        Self::new(units)
    }
}

impl fmt::Display for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
