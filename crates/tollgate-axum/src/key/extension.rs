//! Who an earlier layer found the client to be.

use std::fmt;
use std::future::{Future, ready};
use std::marker::PhantomData;

use http::request::Parts;

use super::{IntoKey, KeyExtractor, KeyResult, RequestKey};

/// Counts by something in the request's extensions: the user whom an authentication layer put there.
///
/// That layer has to run first, that is, be added after the limiter. A request without a `T` has no such identity; say
/// with [`or`](KeyExtractor::or) what counts there.
///
/// ```
/// use tollgate_axum::{ExtensionKey, KeyExtractor, PeerAddress};
///
/// #[derive(Clone)]
/// struct User {
///     id: u64,
/// }
///
/// let by_user = ExtensionKey::<User, _>::new(|user| user.id);
/// let (mut parts, ()) = http::Request::new(()).into_parts();
/// assert_eq!(by_user.extract_now(&parts).unwrap()?, None);
///
/// parts.extensions.insert(User { id: 7 });
/// let key = by_user.extract_now(&parts).unwrap()?.unwrap();
/// assert_eq!(key.subject(), b"ext:id:7");
///
/// let or_address = by_user.or(PeerAddress::new());
/// # let _ = or_address;
/// # Ok::<(), tollgate_axum::KeyError>(())
/// ```
///
/// Two types of extensions with the same identities, such as user 7 and tenant 7, are kept apart by
/// [`named`](KeyExtractor::named).
pub struct ExtensionKey<T, F> {
    identify: F,
    extension: PhantomData<fn(&T)>,
}

impl<T, F, K> ExtensionKey<T, F>
where
    T: Send + Sync + 'static,
    F: Fn(&T) -> K + Clone + Send + Sync + 'static,
    K: IntoKey,
{
    /// Counts by what `identify` makes of the extension of type `T`.
    #[must_use]
    pub const fn new(identify: F) -> Self {
        Self {
            identify,
            extension: PhantomData,
        }
    }

    fn key(&self, parts: &Parts) -> KeyResult {
        let Some(extension) = parts.extensions.get::<T>() else {
            return Ok(None);
        };
        let identity = (self.identify)(extension).into_key()?;
        Ok(identity.map(|identity| RequestKey::of_extension(&identity)))
    }
}

impl<T, F, K> KeyExtractor for ExtensionKey<T, F>
where
    T: Send + Sync + 'static,
    F: Fn(&T) -> K + Clone + Send + Sync + 'static,
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

impl<T, F: Clone> Clone for ExtensionKey<T, F> {
    fn clone(&self) -> Self {
        Self {
            identify: self.identify.clone(),
            extension: PhantomData,
        }
    }
}

impl<T, F> fmt::Debug for ExtensionKey<T, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let extension = std::any::type_name::<T>();
        f.debug_struct("ExtensionKey")
            .field("extension", &extension)
            .finish_non_exhaustive()
    }
}
