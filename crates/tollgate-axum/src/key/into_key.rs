//! What can be a key.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use super::KeyResult;
use super::error::KeyError;
use super::request_key::RequestKey;

/// What a closure may return as the identity of a client.
///
/// Text and bytes are taken as they are, integers in decimal, addresses as [`RequestKey::from`] takes them, IPv6 masked.
/// `None` is no identity. An error of another type becomes one by [`KeyError::other`].
///
/// ```
/// use tollgate_axum::{IntoKey, RequestKey};
///
/// assert_eq!(42_u64.into_key()?, Some(RequestKey::new("42")?));
/// assert_eq!(None::<String>.into_key()?, None);
/// assert!("".into_key().is_err());
/// # Ok::<(), tollgate_axum::KeyError>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not name a client",
    note = "return text, bytes, an integer, an address or a `RequestKey`, or an `Option` or `Result` of one"
)]
pub trait IntoKey {
    /// The key.
    ///
    /// # Errors
    /// [`KeyError::EmptyIdentity`] for empty text or bytes, and the error that was returned in the place of a key.
    fn into_key(self) -> KeyResult;
}

impl IntoKey for RequestKey {
    fn into_key(self) -> KeyResult {
        Ok(Some(self))
    }
}

impl<K: IntoKey> IntoKey for Option<K> {
    fn into_key(self) -> KeyResult {
        self.map_or(Ok(None), K::into_key)
    }
}

impl<K: IntoKey> IntoKey for Result<K, KeyError> {
    fn into_key(self) -> KeyResult {
        self.and_then(K::into_key)
    }
}

macro_rules! bytes_into_key {
    ($($bytes:ty),*) => {$(
        impl IntoKey for $bytes {
            fn into_key(self) -> KeyResult {
                RequestKey::new(self).map(Some)
            }
        }
    )*};
}

bytes_into_key!(&str, String, &[u8], Vec<u8>);

impl IntoKey for Arc<str> {
    fn into_key(self) -> KeyResult {
        self.as_bytes().into_key()
    }
}

macro_rules! address_into_key {
    ($($address:ty),*) => {$(
        impl IntoKey for $address {
            fn into_key(self) -> KeyResult {
                Ok(Some(RequestKey::from(IpAddr::from(self))))
            }
        }
    )*};
}

address_into_key!(IpAddr, Ipv4Addr, Ipv6Addr);

macro_rules! integer_into_key {
    ($($integer:ty),*) => {$(
        impl IntoKey for $integer {
            fn into_key(self) -> KeyResult {
                Ok(Some(RequestKey::number(self)))
            }
        }
    )*};
}

integer_into_key!(
    u8, u16, u32, u64, u128, usize, i8, i16, i32, i64, i128, isize
);
