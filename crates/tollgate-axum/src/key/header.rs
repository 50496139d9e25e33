//! What the client says it is, checked.

use std::fmt;
use std::future::{Future, ready};

use http::request::Parts;
use http::{HeaderName, HeaderValue};

use super::{IntoKey, KeyExtractor, KeyResult, RequestKey};

/// Counts by an API key in a header, once the application has found it valid.
///
/// The validator gets the header's text and returns whose it is, or `None` for a key it does not know. A request without
/// a valid key has no such identity: the header is missing, empty, not printable ASCII or there several times, or the
/// validator does not know it. [`or`](KeyExtractor::or) an address extractor counts there, so a client that makes up a key
/// for each request stays within one limit:
///
/// ```
/// use http::HeaderName;
/// use tollgate_axum::{HeaderKey, KeyExtractor, PeerAddress};
///
/// let header = HeaderName::from_static("x-api-key");
/// let by_api_key = HeaderKey::new(header, |key: &str| (key == "s3cret").then_some("acme"));
///
/// let (mut parts, ()) = http::Request::new(()).into_parts();
/// parts.headers.insert("x-api-key", "s3cret".parse()?);
/// let key = by_api_key.extract_now(&parts).unwrap()?.unwrap();
/// assert_eq!(key.subject(), b"header:x-api-key:id:acme");
///
/// parts.headers.insert("x-api-key", "guessed".parse()?);
/// assert_eq!(by_api_key.extract_now(&parts).unwrap()?, None);
///
/// let or_address = by_api_key.or(PeerAddress::new());
/// # let _ = or_address;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// The identity becomes part of the keys in the store. Return the account rather than the secret itself.
#[derive(Clone)]
pub struct HeaderKey<V> {
    header: HeaderName,
    validate: V,
}

impl<V, K> HeaderKey<V>
where
    V: Fn(&str) -> K + Clone + Send + Sync + 'static,
    K: IntoKey,
{
    /// Counts by what `validate` makes of the header's text.
    #[must_use]
    pub const fn new(header: HeaderName, validate: V) -> Self {
        Self { header, validate }
    }

    fn key(&self, parts: &Parts) -> KeyResult {
        let Some(text) = only_value(parts, &self.header).and_then(|value| value.to_str().ok())
        else {
            return Ok(None);
        };
        let identity = (self.validate)(text).into_key()?;
        Ok(identity.map(|identity| RequestKey::of_header(&self.header, identity.subject())))
    }
}

impl<V, K> KeyExtractor for HeaderKey<V>
where
    V: Fn(&str) -> K + Clone + Send + Sync + 'static,
    K: IntoKey,
{
    fn extract(&self, parts: &Parts) -> impl Future<Output = KeyResult> + Send {
        ready(self.key(parts))
    }

    #[inline]
    fn extract_now(&self, parts: &Parts) -> Option<KeyResult> {
        Some(self.key(parts))
    }
}

impl<V> fmt::Debug for HeaderKey<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HeaderKey")
            .field("header", &self.header)
            .finish_non_exhaustive()
    }
}

/// [`HeaderKey`] with a validator that waits: a look-up in a database or a cache.
///
/// What [`HeaderKey`] takes for no identity is not looked up.
///
/// ```
/// use http::HeaderName;
/// use tollgate_axum::{AsyncHeaderKey, KeyExtractor, PeerAddress};
///
/// # async fn account_of(key: String) -> Option<u64> { key.parse().ok() }
/// let header = HeaderName::from_static("x-api-key");
/// let by_account = AsyncHeaderKey::new(header, |key: &str| {
///     let key = key.to_owned();
///     async move { account_of(key).await }
/// });
/// let or_address = by_account.or(PeerAddress::new());
/// # let _ = or_address;
/// ```
#[derive(Clone)]
pub struct AsyncHeaderKey<V> {
    header: HeaderName,
    validate: V,
}

impl<V, Fut> AsyncHeaderKey<V>
where
    V: Fn(&str) -> Fut + Clone + Send + Sync + 'static,
    Fut: Future<Output: IntoKey> + Send,
{
    /// Counts by what the future that `validate` returns makes of the header's text.
    #[must_use]
    pub const fn new(header: HeaderName, validate: V) -> Self {
        Self { header, validate }
    }
}

impl<V, Fut> KeyExtractor for AsyncHeaderKey<V>
where
    V: Fn(&str) -> Fut + Clone + Send + Sync + 'static,
    Fut: Future<Output: IntoKey> + Send,
{
    async fn extract(&self, parts: &Parts) -> KeyResult {
        let Some(text) = only_value(parts, &self.header).and_then(|value| value.to_str().ok())
        else {
            return Ok(None);
        };
        let identity = (self.validate)(text).await.into_key()?;
        Ok(identity.map(|identity| RequestKey::of_header(&self.header, identity.subject())))
    }
}

impl<V> fmt::Debug for AsyncHeaderKey<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AsyncHeaderKey")
            .field("header", &self.header)
            .finish_non_exhaustive()
    }
}

/// Counts by a header as the client sent it, without asking whether it is true.
///
/// Only for a header that the client cannot choose: one that a gateway in front, which the client cannot go around, sets
/// on every request. A client that chooses it takes a fresh limit with each request. Where it can, use [`HeaderKey`].
///
/// Missing, empty or there several times, the header is no identity.
///
/// ```
/// use http::HeaderName;
/// use tollgate_axum::{KeyExtractor, UnvalidatedHeaderKey};
///
/// let by_consumer = UnvalidatedHeaderKey::new(HeaderName::from_static("x-consumer-id"));
/// let (mut parts, ()) = http::Request::new(()).into_parts();
/// parts.headers.insert("x-consumer-id", "acme".parse()?);
/// let key = by_consumer.extract_now(&parts).unwrap()?.unwrap();
/// assert_eq!(key.subject(), b"header:x-consumer-id:acme");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct UnvalidatedHeaderKey {
    header: HeaderName,
}

impl UnvalidatedHeaderKey {
    /// Counts by the bytes of `header`.
    #[must_use]
    pub const fn new(header: HeaderName) -> Self {
        Self { header }
    }

    fn key(&self, parts: &Parts) -> Option<RequestKey> {
        let value = only_value(parts, &self.header)?;
        Some(RequestKey::of_header(&self.header, value.as_bytes()))
    }
}

impl KeyExtractor for UnvalidatedHeaderKey {
    fn extract(&self, parts: &Parts) -> impl Future<Output = KeyResult> + Send {
        ready(Ok(self.key(parts)))
    }

    #[inline]
    fn extract_now(&self, parts: &Parts) -> Option<KeyResult> {
        Some(Ok(self.key(parts)))
    }
}

/// The header's value, if it is there once and not empty.
///
/// Of several, one hop may read the first and the next one the last, so none of them is taken.
fn only_value<'a>(parts: &'a Parts, header: &HeaderName) -> Option<&'a HeaderValue> {
    let mut values = parts.headers.get_all(header).iter();
    let value = values.next()?;
    if values.next().is_some() || value.is_empty() {
        return None;
    }
    Some(value)
}
