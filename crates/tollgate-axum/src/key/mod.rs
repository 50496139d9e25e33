//! Who is limited: from a request's head to the subject of its counter.

mod closure;
mod combine;
mod error;
mod extension;
mod forwarded;
mod global;
mod header;
mod into_key;
mod peer;
mod prefix;
mod request_key;

use std::future::Future;

use http::request::Parts;

pub use closure::{AsyncKey, from_async_fn};
pub use combine::{And, Named, Or};
pub use error::KeyError;
pub use extension::ExtensionKey;
pub use forwarded::{
    ForwardedAddress, ForwardedError, ForwardedHeader, ForwardedHeaderError, ForwardedProblem,
    HopsError, TrustedProxies, TrustedProxiesError,
};
pub use global::GlobalKey;
pub use header::{AsyncHeaderKey, HeaderKey, UnvalidatedHeaderKey};
pub use into_key::IntoKey;
pub use peer::PeerAddress;
pub use prefix::{Ipv6Prefix, Ipv6PrefixError};
pub use request_key::RequestKey;

/// What a [`KeyExtractor`] answers: the key, no identity, or why it cannot tell.
pub type KeyResult = Result<Option<RequestKey>, KeyError>;

/// Finds out who sent a request.
///
/// `Ok(Some(key))` names the counter. `Ok(None)` says that the request carries no such identity: another extractor may
/// have one, see [`or`](Self::or), and without any the request is refused by the limiter's rules, never counted in a
/// bucket shared by all who have none. `Err` says that the identity cannot be told, for instance because a trusted proxy
/// sent a malformed header.
///
/// Every closure from `&Parts` to something that is a key ([`IntoKey`]) is an extractor:
///
/// ```
/// use http::request::Parts;
/// use tollgate_axum::KeyExtractor;
///
/// fn assert_extractor(_: impl KeyExtractor) {}
///
/// assert_extractor(|parts: &Parts| {
///     let session = parts.headers.get("x-session")?;
///     Some(session.as_bytes().to_vec())
/// });
/// ```
///
/// One that has to wait, say for a look-up of the session, is made of an async closure by [`from_async_fn`], or
/// implements this trait with an `async fn`:
///
/// ```
/// use http::request::Parts;
/// use tollgate_axum::{KeyExtractor, KeyResult, RequestKey};
///
/// #[derive(Clone)]
/// struct Session;
///
/// impl KeyExtractor for Session {
///     async fn extract(&self, parts: &Parts) -> KeyResult {
///         let Some(session) = parts.headers.get("x-session") else {
///             return Ok(None);
///         };
///         let user = look_up(session.as_bytes()).await;
///         Ok(Some(RequestKey::new(user)?))
///     }
/// }
/// # async fn look_up(_: &[u8]) -> String { "user".to_owned() }
/// # fn assert_extractor(_: impl KeyExtractor) {}
/// # assert_extractor(Session);
/// ```
///
/// Dropping the future charges nothing: extraction comes before the hit.
pub trait KeyExtractor: Clone + Send + Sync + 'static {
    /// The key of the request with this head.
    ///
    /// # Errors
    /// [`KeyError`], if the identity cannot be told.
    fn extract(&self, parts: &Parts) -> impl Future<Output = KeyResult> + Send;

    /// The same answer at once, where it needs no waiting; `None` to be asked through [`extract`](Self::extract).
    ///
    /// It spares the limiter a future. An optimisation, never other semantics.
    #[inline]
    fn extract_now(&self, parts: &Parts) -> Option<KeyResult> {
        let _ = parts;
        None
    }

    /// This identity where there is one, else that of `other`.
    ///
    /// An error of this extractor is an error of both: an identity that cannot be told is not one that is missing.
    fn or<E: KeyExtractor>(self, other: E) -> Or<Self, E> {
        Or::new(self, other)
    }

    /// Both identities together, such as a tenant's users each by their address; none where either has none.
    ///
    /// No two pairs meet, whatever their parts hold.
    ///
    /// ```
    /// use http::request::Parts;
    /// use tollgate_axum::{KeyExtractor, PeerAddress};
    ///
    /// let tenant = |parts: &Parts| parts.uri.host().map(str::to_owned);
    /// let by_tenant_and_address = tenant.and(PeerAddress::new());
    /// # let _ = by_tenant_and_address;
    /// ```
    fn and<E: KeyExtractor>(self, other: E) -> And<Self, E> {
        And::new(self, other)
    }

    /// The same identities, counted apart from those that other extractors find: user 7 from tenant 7.
    ///
    /// Several limits that count one identity apart need no name; their scopes and policies tell them apart.
    fn named(self, name: &'static str) -> Named<Self> {
        Named::new(name, self)
    }
}

/// Runs the examples of the guide.
#[cfg(doctest)]
#[doc = include_str!("../../../../docs/keys.md")]
struct Guide;
