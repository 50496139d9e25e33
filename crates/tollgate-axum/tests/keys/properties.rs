//! What holds for all requests.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use http::HeaderValue;
use http::request::Parts;
use proptest::collection::vec;
use proptest::prelude::{
    Just, Strategy, any, prop_assert, prop_assert_eq, prop_assert_ne, prop_oneof,
};
use proptest::{prop_compose, proptest};
use tollgate_axum::{
    ForwardedAddress, ForwardedHeader, Ipv6Prefix, KeyExtractor, RequestKey, TrustedProxies,
};

use crate::support::{found, request_from};

/// The bytes that a header's value may hold.
fn header_bytes() -> impl Strategy<Value = Vec<u8>> {
    vec(
        prop_oneof![Just(b'\t'), 0x20_u8..0x7f, 0x80_u8..=0xff],
        0..200,
    )
}

/// Text made of what parsers trip over.
fn hostile_text() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        Just("\""),
        Just("\\"),
        Just(","),
        Just(";"),
        Just("="),
        Just("for="),
        Just("["),
        Just("]"),
        Just(":"),
        Just("%"),
        Just("10.0.0.1"),
        Just("192.0.2.1"),
        Just("::1"),
        Just("unknown"),
        Just("_x"),
        Just(" "),
    ];
    vec(piece, 0..60).prop_map(|pieces| pieces.concat().into_bytes())
}

fn address() -> impl Strategy<Value = IpAddr> {
    prop_oneof![
        any::<u32>().prop_map(|bits| IpAddr::from(Ipv4Addr::from_bits(bits))),
        any::<u128>().prop_map(|bits| IpAddr::from(Ipv6Addr::from_bits(bits))),
        any::<u32>().prop_map(|bits| IpAddr::from(Ipv4Addr::from_bits(bits).to_ipv6_mapped())),
    ]
}

/// An address outside of the trusted networks.
fn client_address() -> impl Strategy<Value = IpAddr> {
    address().prop_filter("a proxy", |address| !proxies().contains(*address))
}

/// Addresses inside of the trusted networks.
fn proxy_addresses() -> impl Strategy<Value = Vec<IpAddr>> {
    let inside =
        any::<u32>().prop_map(|bits| IpAddr::from(Ipv4Addr::from_bits(bits >> 8 | 10 << 24)));
    vec(inside, 0..6)
}

fn proxies() -> TrustedProxies {
    TrustedProxies::new(["10.0.0.0/8"]).unwrap()
}

/// How a proxy may write an address into a header.
fn spell(header: ForwardedHeader, address: IpAddr, port: Option<u16>) -> String {
    let host = match address {
        IpAddr::V4(_) => address.to_string(),
        IpAddr::V6(_) => format!("[{address}]"),
    };
    let node = port.map_or(host.clone(), |port| format!("{host}:{port}"));
    match header {
        ForwardedHeader::XForwardedFor => node,
        ForwardedHeader::Forwarded => format!("for=\"{node}\";proto=https"),
    }
}

prop_compose! {
    fn header()(forwarded in any::<bool>()) -> ForwardedHeader {
        if forwarded { ForwardedHeader::Forwarded } else { ForwardedHeader::XForwardedFor }
    }
}

fn with_lines(header: ForwardedHeader, lines: &[Vec<u8>]) -> Parts {
    let mut parts = request_from("10.0.0.1:80");
    let name = header.to_string().parse::<http::HeaderName>().unwrap();
    for line in lines {
        parts
            .headers
            .append(&name, HeaderValue::from_bytes(line).unwrap());
    }
    parts
}

proptest! {
    #[test]
    fn nothing_a_client_forges_changes_its_key(
        header in header(),
        forged in prop_oneof![header_bytes(), hostile_text()],
        in_one_line in any::<bool>(),
        client in client_address(),
        port in any::<Option<u16>>(),
        hops in proxy_addresses(),
    ) {
        let mut written = spell(header, client, port);
        for hop in &hops {
            written.push_str(", ");
            written.push_str(&spell(header, *hop, None));
        }
        let lines = if in_one_line {
            vec![[&forged, &b", "[..], written.as_bytes()].concat()]
        } else {
            vec![forged, written.into_bytes()]
        };
        let parts = with_lines(header, &lines);

        let by_network = ForwardedAddress::behind(proxies()).header(header);
        let key = by_network.extract_now(&parts).unwrap().unwrap().unwrap();
        prop_assert_eq!(&key, &RequestKey::from(client));

        let count = u8::try_from(hops.len() + 1).unwrap();
        let by_count = ForwardedAddress::hops(count).unwrap().header(header);
        prop_assert_eq!(by_count.extract_now(&parts).unwrap().unwrap().unwrap(), key);
    }

    #[test]
    fn no_header_makes_an_extractor_panic_or_answer_none(
        header in header(),
        lines in vec(prop_oneof![header_bytes(), hostile_text()], 0..5),
        count in 1_u8..10,
    ) {
        let parts = with_lines(header, &lines);
        for extractor in [ForwardedAddress::behind(proxies()), ForwardedAddress::hops(count).unwrap()] {
            let answer = extractor.header(header).extract_now(&parts).unwrap();
            prop_assert!(!matches!(answer, Ok(None)));
        }
    }

    #[test]
    fn the_key_of_an_address_is_that_of_its_network_and_of_no_other(
        bits in any::<u128>(), other in any::<u128>(), length in 32_u8..=128,
    ) {
        let prefix = Ipv6Prefix::new(length).unwrap();
        let key = |bits| RequestKey::address(Ipv6Addr::from_bits(bits).into(), prefix);
        let in_network = bits ^ (other >> (length - 1) >> 1);
        prop_assert_eq!(key(bits), key(in_network));
        let outside = bits ^ (1 << (128 - length));
        if length < 128 || bits >> 32 != 0xffff {
            prop_assert_ne!(key(bits), key(outside));
        }
    }

    #[test]
    fn keys_of_different_kinds_never_meet(text in any::<String>(), address in address()) {
        if !text.is_empty() {
            prop_assert_ne!(RequestKey::new(&text).unwrap(), RequestKey::from(address));
        }
        let spelled = RequestKey::from(address);
        prop_assert_ne!(RequestKey::new(spelled.subject()).unwrap(), spelled);
    }

    #[test]
    fn pairs_never_meet(parts in vec("[a-c0-9:]{1,5}", 4)) {
        let pair = |first: &str, second: &str| {
            let (first, second) = (first.to_owned(), second.to_owned());
            let first = move |_: &Parts| first.clone();
            let second = move |_: &Parts| second.clone();
            found(&first.and(second), &request_from("10.0.0.1:80"))
        };
        let same = parts[0] == parts[2] && parts[1] == parts[3];
        prop_assert_eq!(pair(&parts[0], &parts[1]) == pair(&parts[2], &parts[3]), same);
    }
}
