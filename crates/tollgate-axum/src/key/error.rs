//! Why a request's identity cannot be told.

use std::error::Error;

use super::forwarded::ForwardedError;

/// Why a request's identity cannot be told.
///
/// The request is refused: counting it for somebody else, or for nobody, would be a way around the limit.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// Nobody told the service who is on the other side of the connection.
    #[error(
        "the request does not carry its peer's address; serve the router with \
         `into_make_service_with_connect_info::<SocketAddr>()`, or insert a `ConnectInfo<SocketAddr>` into the \
         request's extensions"
    )]
    NoPeerAddress,
    /// A trusted proxy does not tell whom it speaks for.
    #[error("a trusted proxy does not tell the client's address")]
    Forwarded(#[from] ForwardedError),
    /// An identity without any bytes, which would stand for nobody or for everybody.
    #[error(
        "the identity is empty; expected at least one byte, or `None` where there is no identity"
    )]
    EmptyIdentity,
    /// What an extractor outside of this crate reports.
    #[error("the client's identity cannot be told")]
    Other(#[source] Box<dyn Error + Send + Sync>),
}

impl KeyError {
    /// The error of an extractor of the application's own.
    pub fn other(source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::Other(source.into())
    }
}
