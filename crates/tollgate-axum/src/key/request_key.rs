//! The subject of a request, tagged with its kind.

use std::fmt::{self, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use smallvec::SmallVec;

use super::error::KeyError;
use super::prefix::Ipv6Prefix;

/// Room for the longest address: `ip:`, 39 characters and `/127`.
const INLINE: usize = 48;

/// Who a request is counted for: the subject of its keys.
///
/// Never empty. The subject starts with its kind and a colon, so that subjects of different kinds never meet: a session
/// spelled like an address does not share that address's counter.
///
/// | subject | whose |
/// |---|---|
/// | `ip:203.0.113.7`, `ip:2001:db8:0:7::/64` | an address, or the network an IPv6 address is masked to |
/// | `id:` and the bytes | what a closure or [`new`](Self::new) names |
///
/// These are the bytes to pass to [`Limiter::peek`](tollgate_core::Limiter::peek) or
/// [`reset`](tollgate_core::Limiter::reset) for a client that was counted here:
///
/// ```
/// use std::net::IpAddr;
/// use tollgate_axum::RequestKey;
///
/// let address: IpAddr = "2001:db8:0:7:1:2:3:4".parse()?;
/// assert_eq!(RequestKey::from(address).subject(), b"ip:2001:db8:0:7::/64");
/// assert_eq!(RequestKey::new("ip:203.0.113.7")?.subject(), b"id:ip:203.0.113.7");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// Up to 48 bytes, which any address is, stand without an allocation.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct RequestKey {
    subject: SmallVec<[u8; INLINE]>,
}

/// The kinds of subjects. No kind's tag holds a colon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Address,
    Custom,
}

impl Kind {
    const fn tag(self) -> &'static [u8] {
        match self {
            Self::Address => b"ip:",
            Self::Custom => b"id:",
        }
    }
}

impl RequestKey {
    /// A key of the application's own making.
    ///
    /// # Errors
    /// [`KeyError::EmptyIdentity`] for no bytes at all: nobody would be named, or everybody.
    #[inline]
    pub fn new(identity: impl AsRef<[u8]>) -> Result<Self, KeyError> {
        Self::of_kind(Kind::Custom, identity.as_ref())
    }

    /// The key of an address, with an IPv6 address masked to `prefix`.
    ///
    /// An IPv4 address in an IPv6 socket's clothes (`::ffff:203.0.113.7`) is that IPv4 address, however it is spelled.
    #[must_use]
    pub fn address(address: IpAddr, prefix: Ipv6Prefix) -> Self {
        match address.to_canonical() {
            IpAddr::V4(address) => Self::v4(address),
            IpAddr::V6(address) => Self::v6(address, prefix),
        }
    }

    /// The key of an integer: its decimal digits.
    pub(crate) fn number(number: impl fmt::Display) -> Self {
        let mut key = Self::start(Kind::Custom);
        key.push(format_args!("{number}"));
        key
    }

    fn v4(address: Ipv4Addr) -> Self {
        let mut key = Self::start(Kind::Address);
        key.push(format_args!("{address}"));
        key
    }

    fn v6(address: Ipv6Addr, prefix: Ipv6Prefix) -> Self {
        let mut key = Self::start(Kind::Address);
        let network = prefix.mask(address);
        if prefix == Ipv6Prefix::WHOLE_ADDRESS {
            key.push(format_args!("{network}"));
        } else {
            key.push(format_args!("{network}/{}", prefix.length()));
        }
        key
    }

    pub(crate) fn of_kind(kind: Kind, identity: &[u8]) -> Result<Self, KeyError> {
        if identity.is_empty() {
            return Err(KeyError::EmptyIdentity);
        }
        let mut key = Self::start(kind);
        key.subject.extend_from_slice(identity);
        Ok(key)
    }

    fn start(kind: Kind) -> Self {
        Self {
            subject: SmallVec::from_slice(kind.tag()),
        }
    }

    fn push(&mut self, text: fmt::Arguments<'_>) {
        // Writing into memory cannot fail, and the types written here do not fail by themselves.
        let _ = self.write_fmt(text);
    }

    /// The subject's bytes, the kind included.
    #[must_use]
    #[inline]
    pub fn subject(&self) -> &[u8] {
        &self.subject
    }
}

impl Write for RequestKey {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.subject.extend_from_slice(text.as_bytes());
        Ok(())
    }
}

impl From<IpAddr> for RequestKey {
    /// The key of an address, with an IPv6 address masked to the [default prefix](Ipv6Prefix::DEFAULT).
    fn from(address: IpAddr) -> Self {
        Self::address(address, Ipv6Prefix::DEFAULT)
    }
}

impl AsRef<[u8]> for RequestKey {
    fn as_ref(&self) -> &[u8] {
        self.subject()
    }
}

impl fmt::Debug for RequestKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RequestKey({})", self.subject.escape_ascii())
    }
}
