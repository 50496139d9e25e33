#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod admission;
mod future;
mod key;
mod layer;
mod refusal;
mod scope;
mod service;

pub use future::ResponseFuture;
pub use key::{
    And, AsyncHeaderKey, AsyncKey, ExtensionKey, ForwardedAddress, ForwardedError, ForwardedHeader,
    ForwardedHeaderError, ForwardedProblem, GlobalKey, HeaderKey, HopsError, IntoKey, Ipv6Prefix,
    Ipv6PrefixError, KeyError, KeyExtractor, KeyResult, Named, Or, PeerAddress, RequestKey,
    TrustedProxies, TrustedProxiesError, UnvalidatedHeaderKey, from_async_fn,
};
pub use layer::{MissingKey, RateLimitLayer};
pub use service::RateLimitService;
pub use tollgate_core;
