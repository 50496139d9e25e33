//! Who is limited: from a request's head to the subject of its counter.

mod closure;
mod error;
mod into_key;
mod peer;
mod prefix;
mod request_key;

use std::future::Future;

use http::request::Parts;

pub use closure::{AsyncKey, from_async_fn};
pub use error::KeyError;
pub use into_key::IntoKey;
pub use peer::PeerAddress;
pub use prefix::{Ipv6Prefix, Ipv6PrefixError};
pub use request_key::RequestKey;

/// What a [`KeyExtractor`] answers: the key, no identity, or why it cannot tell.
pub type KeyResult = Result<Option<RequestKey>, KeyError>;

/// Finds out who sent a request.
///
/// `Ok(Some(key))` names the counter. `Ok(None)` says that the request carries no such identity: another extractor may
/// have one, and without any the request is refused by the limiter's rules, never counted in a
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

    /// The same answer at once, from extractors that never wait; `None` from all others.
    ///
    /// It spares the limiter a future. An optimisation, never other semantics: an extractor answers here either always
    /// or never.
    #[inline]
    fn extract_now(&self, parts: &Parts) -> Option<KeyResult> {
        let _ = parts;
        None
    }
}
