//! The peer's address.

use std::net::SocketAddr;

use axum::extract::connect_info::MockConnectInfo;
use tollgate_axum::{Ipv6Prefix, Ipv6PrefixError, KeyError, PeerAddress};

use crate::support::{found, request, request_from, subject};

#[test]
fn a_peer_is_counted_by_its_address_whatever_its_port() {
    let peer = PeerAddress::new();
    assert_eq!(
        found(&peer, &request_from("203.0.113.7:1")),
        "ip:203.0.113.7"
    );
    assert_eq!(
        found(&peer, &request_from("203.0.113.7:65535")),
        "ip:203.0.113.7"
    );
}

#[test]
fn an_ipv6_peer_is_counted_by_its_64_leading_bits() {
    let peer = PeerAddress::new();
    let one = found(&peer, &request_from("[2001:db8:1:2:3:4:5:6]:80"));
    assert_eq!(one, "ip:2001:db8:1:2::/64");
    assert_eq!(
        one,
        found(&peer, &request_from("[2001:db8:1:2:ffff::1]:80"))
    );
    assert_ne!(
        one,
        found(&peer, &request_from("[2001:db8:1:3:3:4:5:6]:80"))
    );
}

#[test]
fn the_prefix_can_be_set_and_two_prefixes_never_meet() {
    let request = request_from("[2001:db8::1]:80");
    let subject = |length| {
        found(
            &PeerAddress::new().ipv6_prefix(Ipv6Prefix::new(length).unwrap()),
            &request,
        )
    };
    assert_eq!(subject(32), "ip:2001:db8::/32");
    assert_eq!(subject(48), "ip:2001:db8::/48");
    assert_eq!(subject(127), "ip:2001:db8::/127");
    assert_eq!(subject(128), "ip:2001:db8::1");
}

#[test]
fn a_prefix_length_out_of_range_is_refused() {
    for length in [0, 31, 129, 255] {
        let refused = Ipv6PrefixError::OutOfRange(length.to_string());
        assert_eq!(Ipv6Prefix::new(length), Err(refused.clone()));
        assert_eq!(length.to_string().parse::<Ipv6Prefix>(), Err(refused));
    }
    for text in ["", "/", "+64", "sixty-four", "64 ", "6\u{664}", "//64"] {
        let refused = Ipv6PrefixError::NotANumber(text.to_owned());
        assert_eq!(text.parse::<Ipv6Prefix>(), Err(refused));
    }
    let huge = "9".repeat(40);
    assert_eq!(
        huge.parse::<Ipv6Prefix>(),
        Err(Ipv6PrefixError::OutOfRange(huge))
    );
}

#[test]
fn b60_an_ipv4_peer_of_an_ipv6_socket_is_that_ipv4_address_by_bits_not_spelling() {
    let peer = PeerAddress::new();
    for spelling in [
        "[::ffff:203.0.113.7]:80",
        "[::ffff:cb00:7107]:80",
        "[0:0:0:0:0:FFFF:CB00:7107]:80",
    ] {
        assert_eq!(
            found(&peer, &request_from(spelling)),
            "ip:203.0.113.7",
            "{spelling}"
        );
    }
    // Not in `::ffff:0:0/96`, so these are IPv6 addresses.
    for other in [
        "[::203.0.113.7]:80",
        "[::fffe:203.0.113.7]:80",
        "[1::ffff:203.0.113.7]:80",
    ] {
        assert!(
            found(&peer, &request_from(other)).ends_with("::/64"),
            "{other}"
        );
    }
}

#[test]
fn a_zone_does_not_make_another_client() {
    let peer = PeerAddress::new().ipv6_prefix(Ipv6Prefix::WHOLE_ADDRESS);
    assert_eq!(found(&peer, &request_from("[fe80::1%3]:80")), "ip:fe80::1");
}

#[test]
fn b86_without_a_peer_the_error_says_how_to_serve_the_router() {
    let error = subject(&PeerAddress::new(), &request()).unwrap_err();
    assert!(matches!(error, KeyError::NoPeerAddress));
    let message = error.to_string();
    assert!(
        message.contains("`into_make_service_with_connect_info::<SocketAddr>()`"),
        "{message}"
    );
}

#[test]
fn the_peer_that_axum_mocks_in_tests_is_taken_where_there_is_no_other() {
    let peer: SocketAddr = "198.51.100.1:7".parse().unwrap();
    let mut parts = request();
    parts.extensions.insert(MockConnectInfo(peer));
    assert_eq!(found(&PeerAddress::new(), &parts), "ip:198.51.100.1");

    let mut parts = request_from("203.0.113.7:80");
    parts.extensions.insert(MockConnectInfo(peer));
    assert_eq!(found(&PeerAddress::new(), &parts), "ip:203.0.113.7");
}
