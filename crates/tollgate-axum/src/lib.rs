#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod admission;
mod charged;
mod count_after;
mod counting;
mod denial;
mod future;
mod headers;
mod key;
mod layer;
mod limiters;
mod outage;
mod rate_limit;
mod refusal;
mod request_limiter;
mod respond;
mod scope;
mod service;
#[cfg(feature = "settings")]
mod settings;
mod shape;
mod status;
mod tier;

pub use charged::{Charged, NothingCharged};
pub use count_after::{CountAfter, Outcome};
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
pub use rate_limit::{NoRateLimit, RateLimit};
pub use request_limiter::{NotAdmitted, RequestLimiter};
pub use respond::{ProblemDocument, Refused, Respond, RespondWith, RespondWithAsync};
pub use service::RateLimitService;
#[cfg(feature = "settings")]
pub use settings::{EnvError, Settings, SettingsError, ValueError, VariableError, VariableProblem};
pub use status::PolicyStatus;
pub use tier::{IntoTier, Tier, TierResult};
pub use tollgate_core;

/// The guide's code runs with the documentation's.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/http.md")]
struct Guide;
