//! The client's address as trusted proxies tell it.

mod element;
mod error;
mod header;
mod node;
mod trust;
mod walk;

use std::fmt;
use std::future::{Future, ready};
use std::net::IpAddr;
use std::num::NonZeroU8;

use http::request::Parts;

use super::peer::peer_address;
use super::prefix::Ipv6Prefix;
use super::{KeyError, KeyExtractor, KeyResult, RequestKey};

pub use error::{ForwardedError, ForwardedProblem};
pub use header::{ForwardedHeader, ForwardedHeaderError};
pub use trust::{TrustedProxies, TrustedProxiesError};

/// Counts by the client's address, as the proxies in front of the service tell it.
///
/// Each proxy appends the address it was called from to one header, so only the right end of that header is true: what
/// stands further left may have been sent by the client. There are two ways to know how far to go:
///
/// - [`behind`](Self::behind) proxies given by their networks: beginning with the peer and going through the header from
///   right to left, the first address that is no trusted proxy is the client. If all are trusted, the leftmost one is. If
///   the peer itself is none of the proxies, it is the client and the header is not read; the same goes for a proxy that
///   sent no header.
/// - [`hops`](Self::hops), a fixed number of proxies: the n-th entry from the right. The peer is not looked at, so nobody
///   must be able to call the service past the proxies.
///
/// One header is read, `X-Forwarded-For` unless [`header`](Self::header) says `Forwarded`, because a proxy that writes one
/// of them hands on the other as the client wrote it. The lines of a header that is there several times are one list, in
/// order.
///
/// An entry that has to be read and is no address is a [`KeyError::Forwarded`]: a trusted proxy is misconfigured, and
/// there is nobody to count the request for. Entries left of the client are never read, so nothing that a client forges
/// has an effect. Ports and zones are left out, and of an IPv6 address its [`Ipv6Prefix`] counts.
///
/// ```
/// use std::net::SocketAddr;
///
/// use axum::extract::ConnectInfo;
/// use tollgate_axum::{ForwardedAddress, KeyExtractor};
///
/// let by_client = ForwardedAddress::behind(["10.0.0.0/8", "fd00::/8"].try_into()?);
///
/// let (mut parts, ()) = http::Request::new(()).into_parts();
/// parts.extensions.insert(ConnectInfo(SocketAddr::from(([10, 0, 0, 2], 41_234))));
/// parts.headers.insert("x-forwarded-for", "192.0.2.99, 203.0.113.7:5678, 10.0.0.1".parse()?);
/// let key = by_client.extract_now(&parts).unwrap()?.unwrap();
/// assert_eq!(key.subject(), b"ip:203.0.113.7");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct ForwardedAddress {
    trust: Trust,
    header: ForwardedHeader,
    prefix: Ipv6Prefix,
}

/// Which entries of the header are true.
#[derive(Clone, Debug)]
enum Trust {
    Proxies(TrustedProxies),
    Hops(NonZeroU8),
}

impl ForwardedAddress {
    /// Counts by the first address from the right that is none of `proxies`.
    ///
    /// With no proxies at all it is [`PeerAddress`](crate::PeerAddress).
    #[must_use]
    pub fn behind(proxies: TrustedProxies) -> Self {
        Self::trusting(Trust::Proxies(proxies))
    }

    /// Counts by the entry that the outermost of `proxies` proxies wrote: the n-th from the right.
    ///
    /// ```
    /// use tollgate_axum::{ForwardedAddress, KeyExtractor};
    ///
    /// let behind_two = ForwardedAddress::hops(2)?;
    /// let (mut parts, ()) = http::Request::new(()).into_parts();
    /// parts.headers.insert("x-forwarded-for", "192.0.2.99, 203.0.113.7, 10.0.0.1".parse()?);
    /// let key = behind_two.extract_now(&parts).unwrap()?.unwrap();
    /// assert_eq!(key.subject(), b"ip:203.0.113.7");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`HopsError`] for no proxies, where the peer's address is the client's.
    pub fn hops(proxies: u8) -> Result<Self, HopsError> {
        NonZeroU8::new(proxies).map(Self::over).ok_or(HopsError)
    }

    /// [`hops`](Self::hops) of a number that cannot be wrong.
    pub(crate) fn over(proxies: NonZeroU8) -> Self {
        Self::trusting(Trust::Hops(proxies))
    }

    fn trusting(trust: Trust) -> Self {
        Self {
            trust,
            header: ForwardedHeader::default(),
            prefix: Ipv6Prefix::DEFAULT,
        }
    }

    /// Sets which header the proxies write.
    #[must_use]
    pub fn header(mut self, header: ForwardedHeader) -> Self {
        self.header = header;
        self
    }

    /// Sets how much of an IPv6 address names a client.
    #[must_use]
    pub fn ipv6_prefix(mut self, prefix: Ipv6Prefix) -> Self {
        self.prefix = prefix;
        self
    }

    fn client(&self, parts: &Parts) -> Result<IpAddr, KeyError> {
        let client = match &self.trust {
            Trust::Proxies(proxies) => {
                let peer = peer_address(parts)?;
                walk::behind(proxies, peer, self.header, &parts.headers)?
            }
            Trust::Hops(hops) => walk::hops(*hops, self.header, &parts.headers)?,
        };
        Ok(client)
    }

    fn key(&self, parts: &Parts) -> KeyResult {
        let client = self.client(parts)?;
        Ok(Some(RequestKey::address(client, self.prefix)))
    }
}

impl KeyExtractor for ForwardedAddress {
    fn extract(&self, parts: &Parts) -> impl Future<Output = KeyResult> + Send {
        ready(self.key(parts))
    }

    #[inline]
    fn extract_now(&self, parts: &Parts) -> Option<KeyResult> {
        Some(self.key(parts))
    }
}

/// Zero proxies to count back over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HopsError;

impl fmt::Display for HopsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "there are no proxies to count back over; expected 1 to 255, or `PeerAddress` where clients connect directly",
        )
    }
}

impl std::error::Error for HopsError {}
