//! Keys in a limiter: who shares a counter with whom.

use http::request::Parts;
use tollgate_axum::{KeyExtractor, PeerAddress};
use tollgate_core::{Limiter, Quota};
use tollgate_memory::MemoryStore;

use crate::support::request_from;

fn is_admitted(
    limiter: &Limiter<MemoryStore>,
    extractor: &impl KeyExtractor,
    parts: &Parts,
) -> bool {
    let key = extractor.extract_now(parts).unwrap().unwrap().unwrap();
    limiter.hit_now(key.subject()).unwrap().is_allowed()
}

#[test]
fn b57_one_client_does_not_use_up_the_limit_of_another() {
    let limiter = Limiter::new(MemoryStore::new(), Quota::per_minute(2));
    let peer = PeerAddress::new();
    let (a, b) = (request_from("192.0.2.1:1"), request_from("192.0.2.2:1"));
    assert!(is_admitted(&limiter, &peer, &a));
    assert!(is_admitted(&limiter, &peer, &a));
    assert!(!is_admitted(&limiter, &peer, &a));
    assert!(is_admitted(&limiter, &peer, &b));
    assert!(is_admitted(&limiter, &peer, &b));
}
