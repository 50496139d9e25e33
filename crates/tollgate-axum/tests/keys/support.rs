//! Requests to extract from, and what came out.

use std::net::SocketAddr;

use axum::extract::ConnectInfo;
use http::Request;
use http::request::Parts;
use tollgate_axum::{KeyError, KeyExtractor};

/// The head of a request without anything.
pub(crate) fn request() -> Parts {
    Request::new(()).into_parts().0
}

/// The head of a request from `peer`, an address and a port.
pub(crate) fn request_from(peer: &str) -> Parts {
    let mut parts = request();
    let peer: SocketAddr = peer.parse().unwrap();
    parts.extensions.insert(ConnectInfo(peer));
    parts
}

/// The subject that `extractor` finds, as text, both ways: at once and through the future.
pub(crate) fn subject(
    extractor: &impl KeyExtractor,
    parts: &Parts,
) -> Result<Option<String>, KeyError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let waited = runtime.block_on(extractor.extract(parts));
    if let Some(at_once) = extractor.extract_now(parts) {
        assert_eq!(format!("{at_once:?}"), format!("{waited:?}"));
    }
    let key = waited?;
    Ok(key.map(|key| String::from_utf8(key.subject().to_vec()).unwrap()))
}

/// The subject of a request that has one.
pub(crate) fn found(extractor: &impl KeyExtractor, parts: &Parts) -> String {
    subject(extractor, parts).unwrap().unwrap()
}
