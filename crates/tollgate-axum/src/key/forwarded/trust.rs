//! The proxies whose word is taken.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;
use std::sync::Arc;

use ipnet::{IpNet, Ipv4Net};

/// The networks of the proxies whose word about their clients is taken.
///
/// Each is a network such as `10.0.0.0/8` or `fd00::/8`, or one address. Trust no network from which a client can connect
/// to the service directly: it could claim any address.
///
/// Cheap to clone. An IPv4 peer of an IPv6 socket (`::ffff:10.0.0.1`) is in the IPv4 networks.
///
/// ```
/// use tollgate_axum::TrustedProxies;
///
/// let proxies: TrustedProxies = "10.0.0.0/8, 192.0.2.1, fd00::/8".parse()?;
/// assert!(proxies.contains("10.1.2.3".parse()?));
/// assert!(proxies.contains("::ffff:192.0.2.1".parse()?));
/// assert!(!proxies.contains("192.0.2.2".parse()?));
///
/// let error = "10.0.0.1/8".parse::<TrustedProxies>().unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     "\"10.0.0.1/8\" is an address inside of a network; expected \"10.0.0.0/8\" or \"10.0.0.1\""
/// );
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TrustedProxies {
    networks: Arc<[IpNet]>,
}

/// Why a text is no network of proxies.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TrustedProxiesError {
    /// Neither a network nor an address.
    #[error(
        "{0:?} is no network; expected one such as \"10.0.0.0/8\" or \"fd00::/8\", or an address"
    )]
    NotANetwork(String),
    /// An address that is not the first one of its network, so that either may be meant.
    #[error("{text:?} is an address inside of a network; expected \"{network}\" or \"{address}\"")]
    HostBits {
        /// What was written.
        text: String,
        /// The network of that length.
        network: String,
        /// The address alone.
        address: IpAddr,
    },
}

impl TrustedProxies {
    /// The proxies of `networks`.
    ///
    /// # Errors
    /// [`TrustedProxiesError`] for the first that is no network.
    pub fn new<N: AsRef<str>>(
        networks: impl IntoIterator<Item = N>,
    ) -> Result<Self, TrustedProxiesError> {
        let networks = networks.into_iter().map(|text| network(text.as_ref()));
        Ok(Self {
            networks: networks.collect::<Result<_, _>>()?,
        })
    }

    /// Whether `address` is one of the proxies.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.networks
            .iter()
            .any(|network| network.contains(&address))
    }

    /// The networks, in order.
    #[cfg(feature = "settings")]
    pub(crate) fn networks(&self) -> impl Iterator<Item = &IpNet> {
        self.networks.iter()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.networks.is_empty()
    }
}

fn network(text: &str) -> Result<IpNet, TrustedProxiesError> {
    let text = text.trim();
    let not_a_network = || TrustedProxiesError::NotANetwork(text.to_owned());
    if let Ok(address) = text.parse::<IpAddr>() {
        return Ok(address.to_canonical().into());
    }
    let network: IpNet = text.parse().map_err(|_| not_a_network())?;
    if network.addr() != network.network() {
        return Err(TrustedProxiesError::HostBits {
            text: text.to_owned(),
            network: network.trunc().to_string(),
            address: network.addr(),
        });
    }
    Ok(canonical(network))
}

/// A network of IPv4 addresses in IPv6's clothes is that IPv4 network, as such an address is that IPv4 address.
fn canonical(network: IpNet) -> IpNet {
    let IpAddr::V4(address) = network.addr().to_canonical() else {
        return network;
    };
    let IpNet::V6(mapped) = network else {
        return network;
    };
    // A network that begins at a mapped address and is longer than 96 bits holds mapped addresses only.
    mapped
        .prefix_len()
        .checked_sub(96)
        .and_then(|length| Ipv4Net::new(address, length).ok())
        .map_or(network, IpNet::V4)
}

/// Reads networks separated by commas; `none` is no proxies at all.
impl FromStr for TrustedProxies {
    type Err = TrustedProxiesError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.trim().eq_ignore_ascii_case("none") {
            return Ok(Self::default());
        }
        Self::new(text.split(','))
    }
}

impl<N: AsRef<str>, const LENGTH: usize> TryFrom<[N; LENGTH]> for TrustedProxies {
    type Error = TrustedProxiesError;

    fn try_from(networks: [N; LENGTH]) -> Result<Self, Self::Error> {
        Self::new(networks)
    }
}

/// The networks, separated by commas, or `none`; reads back to the same proxies.
impl fmt::Display for TrustedProxies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return f.write_str("none");
        }
        for (index, network) in self.networks.iter().enumerate() {
            let separator = if index == 0 { "" } else { ", " };
            write!(f, "{separator}{network}")?;
        }
        Ok(())
    }
}
