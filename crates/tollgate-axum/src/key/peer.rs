//! The address on the other side of the connection.

use std::future::{Future, ready};
use std::net::{IpAddr, SocketAddr};

use axum::extract::ConnectInfo;
use axum::extract::connect_info::MockConnectInfo;
use http::request::Parts;

use super::prefix::Ipv6Prefix;
use super::{KeyError, KeyExtractor, KeyResult, RequestKey};

/// Counts by the address on the other side of the connection: the default.
///
/// Right where clients connect directly. Behind a proxy every request comes from the proxy's address; say which proxies
/// to trust there.
///
/// The address is the `ConnectInfo<SocketAddr>` that axum puts into a request's extensions when the router is served with
/// `into_make_service_with_connect_info::<SocketAddr>()`. Without it each request is a [`KeyError::NoPeerAddress`]. Tests
/// may use axum's `MockConnectInfo`, and a service without axum's server may insert the `ConnectInfo` itself.
///
/// The port is left out, and of an IPv6 address its [`Ipv6Prefix`] counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PeerAddress {
    prefix: Ipv6Prefix,
}

impl PeerAddress {
    /// Counts by the peer's address, IPv6 masked to `/64`.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets how much of an IPv6 address names a client.
    #[must_use]
    pub const fn ipv6_prefix(mut self, prefix: Ipv6Prefix) -> Self {
        self.prefix = prefix;
        self
    }
}

impl KeyExtractor for PeerAddress {
    fn extract(&self, parts: &Parts) -> impl Future<Output = KeyResult> + Send {
        ready(peer_address(parts).map(|peer| Some(RequestKey::address(peer, self.prefix))))
    }

    #[inline]
    fn extract_now(&self, parts: &Parts) -> Option<KeyResult> {
        Some(peer_address(parts).map(|peer| Some(RequestKey::address(peer, self.prefix))))
    }
}

/// The peer's address, where the service was told.
pub(super) fn peer_address(parts: &Parts) -> Result<IpAddr, KeyError> {
    if let Some(ConnectInfo(peer)) = parts.extensions.get::<ConnectInfo<SocketAddr>>() {
        return Ok(peer.ip());
    }
    match parts.extensions.get::<MockConnectInfo<SocketAddr>>() {
        Some(MockConnectInfo(peer)) => Ok(peer.ip()),
        None => Err(KeyError::NoPeerAddress),
    }
}
