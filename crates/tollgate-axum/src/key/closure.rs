//! Closures as extractors.

use std::fmt;
use std::future::{Future, ready};

use http::request::Parts;

use super::{IntoKey, KeyExtractor, KeyResult};

impl<F, K> KeyExtractor for F
where
    F: Fn(&Parts) -> K + Clone + Send + Sync + 'static,
    K: IntoKey,
{
    fn extract(&self, parts: &Parts) -> impl Future<Output = KeyResult> + Send {
        ready(self(parts).into_key())
    }

    #[inline]
    fn extract_now(&self, parts: &Parts) -> Option<KeyResult> {
        Some(self(parts).into_key())
    }
}

/// An extractor made of a closure that returns a future.
///
/// The closure takes from the head what it needs, and the future looks it up. It does not borrow the head:
///
/// ```
/// use http::request::Parts;
/// use tollgate_axum::{KeyExtractor, from_async_fn};
///
/// # async fn user_of(session: Vec<u8>) -> Option<u64> { Some(session.len() as u64) }
/// let by_user = from_async_fn(|parts: &Parts| {
///     let session = parts.headers.get("x-session").map(|session| session.as_bytes().to_vec());
///     async move { user_of(session?).await }
/// });
/// # fn assert_extractor(_: &impl KeyExtractor) {}
/// # assert_extractor(&by_user);
/// ```
pub fn from_async_fn<F, Fut>(look_up: F) -> AsyncKey<F>
where
    F: Fn(&Parts) -> Fut + Clone + Send + Sync + 'static,
    Fut: Future<Output: IntoKey> + Send,
{
    AsyncKey { look_up }
}

/// See [`from_async_fn`].
#[derive(Clone)]
pub struct AsyncKey<F> {
    look_up: F,
}

impl<F> fmt::Debug for AsyncKey<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AsyncKey").finish_non_exhaustive()
    }
}

impl<F, Fut> KeyExtractor for AsyncKey<F>
where
    F: Fn(&Parts) -> Fut + Clone + Send + Sync + 'static,
    Fut: Future<Output: IntoKey> + Send,
{
    async fn extract(&self, parts: &Parts) -> KeyResult {
        (self.look_up)(parts).await.into_key()
    }
}
