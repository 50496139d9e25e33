//! One counter for everybody, on purpose.

use std::future::{Future, ready};

use http::request::Parts;

use super::{KeyExtractor, KeyResult, RequestKey};

/// Counts all requests together, whoever sent them.
///
/// For a limit on what the service as a whole takes, such as calls to a paid upstream. As a limit per client it would let
/// one client use up everybody's share. No other extractor ever falls back to this.
///
/// ```
/// use tollgate_axum::{GlobalKey, KeyExtractor};
///
/// let (parts, ()) = http::Request::new(()).into_parts();
/// let key = GlobalKey.extract_now(&parts).unwrap()?.unwrap();
/// assert_eq!(key.subject(), b"all:");
/// # Ok::<(), tollgate_axum::KeyError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GlobalKey;

impl KeyExtractor for GlobalKey {
    fn extract(&self, _: &Parts) -> impl Future<Output = KeyResult> + Send {
        ready(Ok(Some(RequestKey::everybody())))
    }

    #[inline]
    fn extract_now(&self, _: &Parts) -> Option<KeyResult> {
        Some(Ok(Some(RequestKey::everybody())))
    }
}
