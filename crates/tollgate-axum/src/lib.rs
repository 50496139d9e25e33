#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod admission;
mod denial;
mod future;
mod headers;
mod key;
mod layer;
mod refusal;
mod scope;
mod service;

pub use denial::{Denial, DenialFormat, DenialReason};
pub use future::ResponseFuture;
pub use headers::{Headers, PartitionKey, QuotaUnit};
pub use key::{
    And, AsyncHeaderKey, AsyncKey, ExtensionKey, ForwardedAddress, ForwardedError, ForwardedHeader,
    ForwardedHeaderError, ForwardedProblem, GlobalKey, HeaderKey, HopsError, IntoKey, Ipv6Prefix,
    Ipv6PrefixError, KeyError, KeyExtractor, KeyResult, Named, Or, PeerAddress, RequestKey,
    TrustedProxies, TrustedProxiesError, UnvalidatedHeaderKey, from_async_fn,
};
pub use layer::{MissingKey, RateLimitLayer};
pub use service::RateLimitService;
pub use tollgate_core;
