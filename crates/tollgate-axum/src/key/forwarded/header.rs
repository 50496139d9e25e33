//! The two headers in which proxies tell addresses.

use std::fmt;
use std::str::FromStr;

use http::HeaderName;
use http::header::FORWARDED;

/// The header that the trusted proxies write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ForwardedHeader {
    /// `X-Forwarded-For`: addresses, each with or without a port. Nobody standardised it, nearly everybody writes it.
    #[default]
    XForwardedFor,
    /// `Forwarded` (RFC 7239): elements such as `for="[2001:db8::1]:4711";proto=https`, of which `for` is read.
    Forwarded,
}

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

impl ForwardedHeader {
    pub(super) fn name(self) -> HeaderName {
        match self {
            Self::XForwardedFor => X_FORWARDED_FOR,
            Self::Forwarded => FORWARDED,
        }
    }

    const fn as_str(self) -> &'static str {
        match self {
            Self::XForwardedFor => "X-Forwarded-For",
            Self::Forwarded => "Forwarded",
        }
    }
}

impl fmt::Display for ForwardedHeader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Reads a header's name, in any case of the letters.
impl FromStr for ForwardedHeader {
    type Err = ForwardedHeaderError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        [Self::XForwardedFor, Self::Forwarded]
            .into_iter()
            .find(|header| header.as_str().eq_ignore_ascii_case(text))
            .ok_or_else(|| ForwardedHeaderError(text.to_owned()))
    }
}

/// A header that is not known to tell addresses.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no header that tells addresses; expected \"X-Forwarded-For\" or \"Forwarded\"")]
pub struct ForwardedHeaderError(String);
