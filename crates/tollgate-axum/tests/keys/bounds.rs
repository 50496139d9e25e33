//! What a key costs, however long the headers are.

use allocation_counter::measure;
use http::HeaderValue;
use tollgate_axum::{
    ForwardedAddress, ForwardedHeader, ForwardedProblem, KeyError, KeyExtractor, PeerAddress,
};

use crate::support::{found, request_from, subject};

fn proxied(header: &'static str, value: &str) -> http::request::Parts {
    let mut parts = request_from("10.0.0.1:80");
    parts
        .headers
        .insert(header, HeaderValue::from_str(value).unwrap());
    parts
}

fn behind_proxies() -> ForwardedAddress {
    ForwardedAddress::behind(["10.0.0.0/8"].try_into().unwrap())
}

#[test]
fn the_key_of_an_address_allocates_nothing() {
    let longest = "2001:db8:1111:2222:3333:4444:5555:6666";
    let whole = behind_proxies().ipv6_prefix("127".parse().unwrap());
    let by_xff = proxied(
        "x-forwarded-for",
        &format!("192.0.2.1, [{longest}]:65535, 10.0.0.2"),
    );
    let by_forwarded = proxied(
        "forwarded",
        &format!("for=192.0.2.1, for=\"[{longest}]:65535\";proto=https"),
    );
    let forwarded = whole.clone().header(ForwardedHeader::Forwarded);
    let allocations = measure(|| {
        assert!(PeerAddress::new().extract_now(&by_xff).unwrap().is_ok());
        assert!(whole.extract_now(&by_xff).unwrap().is_ok());
        assert!(forwarded.extract_now(&by_forwarded).unwrap().is_ok());
    });
    assert_eq!(allocations.count_total, 0);
}

#[test]
fn a_thousand_forged_entries_are_not_even_read() {
    // Were one of them read, the malformed one would be an error.
    let forged = "no address, ".repeat(1_000);
    let parts = proxied("x-forwarded-for", &format!("{forged}203.0.113.7, 10.0.0.2"));
    assert_eq!(found(&behind_proxies(), &parts), "ip:203.0.113.7");
    let parts = proxied(
        "forwarded",
        &format!("{forged}for=203.0.113.7, for=10.0.0.2"),
    );
    assert_eq!(
        found(&behind_proxies().header(ForwardedHeader::Forwarded), &parts),
        "ip:203.0.113.7"
    );
}

#[test]
fn a_thousand_proxies_are_walked_to_the_leftmost() {
    let entries = "10.0.0.2, ".repeat(1_000);
    let parts = proxied("x-forwarded-for", &format!("10.0.0.3, {entries}10.0.0.2"));
    assert_eq!(found(&behind_proxies(), &parts), "ip:10.0.0.3");
}

#[test]
fn a_megabyte_of_quotes_is_one_malformed_entry() {
    let quotes = "\\\\\\\"".repeat(250_000);
    let parts = proxied("forwarded", &format!("{quotes}\""));
    let extractor = behind_proxies().header(ForwardedHeader::Forwarded);
    let KeyError::Forwarded(error) = subject(&extractor, &parts).unwrap_err() else {
        panic!("another error")
    };
    assert_eq!(error.problem(), ForwardedProblem::NotAnElement);
    assert!(error.to_string().len() < 1_000);
}
