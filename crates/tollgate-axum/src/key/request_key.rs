//! The subject of a request, tagged with its kind.

use std::fmt::{self, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use http::HeaderName;
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
/// | `id:alice` | what a closure or [`new`](Self::new) names |
/// | `ext:id:7` | what an [`ExtensionKey`](crate::ExtensionKey) names |
/// | `header:x-api-key:id:acme` | what the validator of a [`HeaderKey`](crate::HeaderKey) names |
/// | `header:x-consumer-id:acme` | what an [`UnvalidatedHeaderKey`](crate::UnvalidatedHeaderKey) holds |
/// | `named:6:tenant4:id:7` | [`named`](crate::KeyExtractor::named): name and subject as [`join_subject`] joins them |
/// | `and:4:id:714:ip:203.0.113.7` | [`and`](crate::KeyExtractor::and): both subjects as [`join_subject`] joins them |
/// | `all:` | everybody, with [`GlobalKey`](crate::GlobalKey) |
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
///
/// [`join_subject`]: tollgate_core::join_subject
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct RequestKey {
    subject: SmallVec<[u8; INLINE]>,
}

// The kinds of subjects. None of them begins like another one.
const ADDRESS: &[u8] = b"ip:";
const CUSTOM: &[u8] = b"id:";
const EXTENSION: &[u8] = b"ext:";
const HEADER: &[u8] = b"header:";
const NAMED: &[u8] = b"named:";
const PAIR: &[u8] = b"and:";
const EVERYBODY: &[u8] = b"all:";

impl RequestKey {
    /// A key of the application's own making.
    ///
    /// # Errors
    /// [`KeyError::EmptyIdentity`] for no bytes at all: nobody would be named, or everybody.
    #[inline]
    pub fn new(identity: impl AsRef<[u8]>) -> Result<Self, KeyError> {
        let identity = identity.as_ref();
        if identity.is_empty() {
            return Err(KeyError::EmptyIdentity);
        }
        Ok(Self::start(CUSTOM).then(identity))
    }

    /// The key of an address, with an IPv6 address masked to `prefix`.
    ///
    /// An IPv6 address that stands for an IPv4 one is that IPv4 address, however it is spelled: all of them lie in one
    /// network and would share its counter. These are the mapped ones (`::ffff:203.0.113.7`, RFC 4291 section 2.5.5.2)
    /// and those behind a translator's well-known prefix (`64:ff9b::203.0.113.7`, RFC 6052 section 2.1).
    #[must_use]
    pub fn address(address: IpAddr, prefix: Ipv6Prefix) -> Self {
        let address = match address.to_canonical() {
            IpAddr::V4(address) => return Self::v4(address),
            IpAddr::V6(address) => address,
        };
        match translated(address) {
            Some(address) => Self::v4(address),
            None => Self::v6(address, prefix),
        }
    }

    /// The key of an integer: its decimal digits.
    pub(crate) fn number(number: impl fmt::Display) -> Self {
        let mut key = Self::start(CUSTOM);
        key.push(format_args!("{number}"));
        key
    }

    fn v4(address: Ipv4Addr) -> Self {
        let mut key = Self::start(ADDRESS);
        key.push(format_args!("{address}"));
        key
    }

    fn v6(address: Ipv6Addr, prefix: Ipv6Prefix) -> Self {
        let mut key = Self::start(ADDRESS);
        let network = prefix.mask(address);
        if prefix == Ipv6Prefix::WHOLE_ADDRESS {
            key.push(format_args!("{network}"));
        } else {
            key.push(format_args!("{network}/{}", prefix.length()));
        }
        key
    }

    pub(super) fn everybody() -> Self {
        Self::start(EVERYBODY)
    }

    pub(super) fn of_extension(identity: &Self) -> Self {
        Self::start(EXTENSION).then(&identity.subject)
    }

    pub(super) fn of_header(header: &HeaderName, value: &[u8]) -> Self {
        // No header's name holds a colon, so the name ends where the first one is.
        let name = header.as_str().as_bytes();
        Self::start(HEADER).then(name).then(b":").then(value)
    }

    pub(super) fn named(name: &str, key: &Self) -> Self {
        Self::start(NAMED)
            .joined(name.as_bytes())
            .joined(&key.subject)
    }

    pub(super) fn pair(first: &Self, second: &Self) -> Self {
        Self::start(PAIR)
            .joined(&first.subject)
            .joined(&second.subject)
    }

    fn start(kind: &[u8]) -> Self {
        Self {
            subject: SmallVec::from_slice(kind),
        }
    }

    fn then(mut self, bytes: &[u8]) -> Self {
        self.subject.extend_from_slice(bytes);
        self
    }

    /// Appends a part with its length in front, as `tollgate_core::join_subject` does, but in place.
    fn joined(mut self, part: &[u8]) -> Self {
        self.push(format_args!("{}:", part.len()));
        self.then(part)
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

/// The IPv4 address behind a translator's well-known prefix, `64:ff9b::/96`.
fn translated(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let [0x64, 0xff9b, 0, 0, 0, 0, high, low] = address.segments() else {
        return None;
    };
    Some(Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low)))
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
