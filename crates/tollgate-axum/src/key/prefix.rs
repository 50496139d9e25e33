//! How much of an IPv6 address names a client.

use std::fmt;
use std::net::Ipv6Addr;
use std::str::FromStr;

/// How many leading bits of an IPv6 address stand for one client.
///
/// A household or a server is handed a whole `/64` (RFC 6177, RFC 7421), so counting single addresses would let it take
/// a fresh limit with each of 2^64 addresses. Networks that hand out a `/56` or `/48` per customer call for that length.
/// IPv4 addresses are never masked.
///
/// ```
/// use tollgate_axum::Ipv6Prefix;
///
/// assert_eq!(Ipv6Prefix::default().length(), 64);
/// assert_eq!("/56".parse(), Ipv6Prefix::new(56));
/// assert_eq!(
///     Ipv6Prefix::new(16).unwrap_err().to_string(),
///     "IPv6 prefix length 16 is out of range; expected 32 to 128, such as 64"
/// );
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ipv6Prefix(u8);

impl Ipv6Prefix {
    /// The shortest length, 32 bits: what a provider gets for all of its customers.
    pub const SHORTEST: u8 = 32;
    /// Each address on its own, 128 bits.
    pub const WHOLE_ADDRESS: Self = Self(128);
    /// 64 bits.
    pub const DEFAULT: Self = Self(64);

    /// A prefix of `length` bits, 32 to 128.
    ///
    /// # Errors
    /// [`Ipv6PrefixError`] for a length out of this range.
    pub fn new(length: u8) -> Result<Self, Ipv6PrefixError> {
        if (Self::SHORTEST..=Self::WHOLE_ADDRESS.0).contains(&length) {
            return Ok(Self(length));
        }
        Err(Ipv6PrefixError::OutOfRange(length.to_string()))
    }

    /// The length in bits.
    #[must_use]
    pub const fn length(self) -> u8 {
        self.0
    }

    /// `address` with all but the leading bits set to zero.
    #[must_use]
    pub const fn mask(self, address: Ipv6Addr) -> Ipv6Addr {
        // The length is at least 32, so the shift is less than 128.
        Ipv6Addr::from_bits(address.to_bits() & u128::MAX << (128 - self.0))
    }
}

impl Default for Ipv6Prefix {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// Reads a length such as `64` or `/64`.
impl FromStr for Ipv6Prefix {
    type Err = Ipv6PrefixError;

    fn from_str(text: &str) -> Result<Self, Ipv6PrefixError> {
        let digits = text.strip_prefix('/').unwrap_or(text);
        if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(Ipv6PrefixError::NotANumber(text.to_owned()));
        }
        digits.parse().map_or_else(
            |_| Err(Ipv6PrefixError::OutOfRange(digits.to_owned())),
            Self::new,
        )
    }
}

impl fmt::Display for Ipv6Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// Why something is no [`Ipv6Prefix`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Ipv6PrefixError {
    /// Fewer than 32 bits or more than 128.
    #[error("IPv6 prefix length {0} is out of range; expected 32 to 128, such as 64")]
    OutOfRange(String),
    /// No number at all.
    #[error("{0:?} is no IPv6 prefix length; expected a number from 32 to 128, such as 64")]
    NotANumber(String),
}
