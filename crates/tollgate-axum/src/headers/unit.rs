//! Quota units: what the numbers count.

use std::fmt;
use std::sync::Arc;

use tollgate_core::{Error, ErrorKind, Result};

/// What one unit of a quota is (the draft's section 3.1.2).
///
/// Cheap to clone. `Display` gives the name in the draft's registry.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct QuotaUnit(Name);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Name {
    Registered(&'static str),
    Own(Arc<str>),
}

impl QuotaUnit {
    /// Requests, which a client assumes where nothing is said.
    pub const REQUESTS: Self = Self(Name::Registered("requests"));
    /// Bytes of content.
    pub const CONTENT_BYTES: Self = Self(Name::Registered("content-bytes"));
    /// Requests that run at the same time.
    pub const CONCURRENT_REQUESTS: Self = Self(Name::Registered("concurrent-requests"));
    /// The longest name, in bytes.
    pub const MAX_NAME: usize = 64;

    /// A unit of another name, such as `tokens`: 1 to [`MAX_NAME`](Self::MAX_NAME) printable ASCII characters.
    ///
    /// ```
    /// use tollgate_axum::QuotaUnit;
    ///
    /// assert_eq!(QuotaUnit::new("tokens")?.to_string(), "tokens");
    /// assert_eq!(QuotaUnit::new("requests")?, QuotaUnit::REQUESTS);
    /// # Ok::<(), tollgate_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`] for a name that breaks the rule above.
    pub fn new(name: &str) -> Result<Self> {
        let registered = [
            Self::REQUESTS,
            Self::CONTENT_BYTES,
            Self::CONCURRENT_REQUESTS,
        ];
        if let Some(unit) = registered.into_iter().find(|unit| unit.as_str() == name) {
            return Ok(unit);
        }
        if name.is_empty() || name.len() > Self::MAX_NAME {
            let (most, length) = (Self::MAX_NAME, name.len());
            return Err(invalid(format!(
                "a quota unit's name has 1 to {most} bytes, not {length}"
            )));
        }
        match name.chars().position(|c| !matches!(c, ' '..='~')) {
            None => Ok(Self(Name::Own(Arc::from(name)))),
            Some(index) => Err(invalid(format!(
                "character {} of the quota unit {name:?} is not printable ASCII",
                index + 1
            ))),
        }
    }

    pub(crate) fn as_str(&self) -> &str {
        match &self.0 {
            Name::Registered(name) => name,
            Name::Own(name) => name,
        }
    }
}

impl fmt::Display for QuotaUnit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

fn invalid(message: String) -> Error {
    Error::new(ErrorKind::InvalidInput, message)
}
