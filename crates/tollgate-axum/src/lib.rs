#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod key;
#[cfg(feature = "settings")]
mod settings;

pub use key::{
    And, AsyncHeaderKey, AsyncKey, ExtensionKey, ForwardedAddress, ForwardedError, ForwardedHeader,
    ForwardedHeaderError, ForwardedProblem, GlobalKey, HeaderKey, HopsError, IntoKey, Ipv6Prefix,
    Ipv6PrefixError, KeyError, KeyExtractor, KeyResult, Named, Or, PeerAddress, RequestKey,
    TrustedProxies, TrustedProxiesError, UnvalidatedHeaderKey, from_async_fn,
};
#[cfg(feature = "settings")]
pub use settings::{EnvError, Settings, SettingsError, ValueError, VariableError, VariableProblem};
