//! The client's address behind proxies.

use http::HeaderValue;
use http::request::Parts;
use tollgate_axum::{
    ForwardedAddress, ForwardedHeader, ForwardedProblem, HopsError, Ipv6Prefix, KeyError,
    TrustedProxies,
};

use crate::support::{found, request, request_from, subject};

/// A proxy at 10.0.0.1 and more of them in 10.0.0.0/8.
fn behind_proxies() -> ForwardedAddress {
    ForwardedAddress::behind(["10.0.0.0/8", "fd00::/8"].try_into().unwrap())
}

/// A request from a proxy with these lines of `header`.
fn proxied(header: ForwardedHeader, lines: &[&str]) -> Parts {
    let mut parts = request_from("10.0.0.1:80");
    for line in lines {
        let value = HeaderValue::from_bytes(line.as_bytes()).unwrap();
        parts.headers.append(name(header), value);
    }
    parts
}

fn name(header: ForwardedHeader) -> &'static str {
    match header {
        ForwardedHeader::XForwardedFor => "x-forwarded-for",
        ForwardedHeader::Forwarded => "forwarded",
    }
}

fn client(header: ForwardedHeader, lines: &[&str]) -> Result<String, ForwardedProblem> {
    let extractor = behind_proxies().header(header);
    problem_or_subject(subject(&extractor, &proxied(header, lines)))
}

fn problem_or_subject(
    answer: Result<Option<String>, KeyError>,
) -> Result<String, ForwardedProblem> {
    match answer {
        Ok(key) => Ok(key.unwrap()),
        Err(KeyError::Forwarded(error)) => Err(error.problem()),
        Err(error) => panic!("{error}"),
    }
}

fn x_forwarded_for(lines: &[&str]) -> Result<String, ForwardedProblem> {
    client(ForwardedHeader::XForwardedFor, lines)
}

pub(crate) fn forwarded(lines: &[&str]) -> Result<String, ForwardedProblem> {
    client(ForwardedHeader::Forwarded, lines)
}

#[test]
fn h17_an_untrusted_peer_is_the_client_and_its_header_is_not_read() {
    for line in ["198.51.100.1", "10.0.0.2", "no address", ""] {
        let mut parts = request_from("203.0.113.7:80");
        parts
            .headers
            .insert("x-forwarded-for", line.parse().unwrap());
        assert_eq!(found(&behind_proxies(), &parts), "ip:203.0.113.7", "{line}");
    }
}

#[test]
fn h17_a_malformed_entry_of_a_trusted_peer_is_an_error() {
    assert_eq!(
        x_forwarded_for(&["no address"]),
        Err(ForwardedProblem::NotAnAddress)
    );
    assert_eq!(
        x_forwarded_for(&["198.51.100.1, no address"]),
        Err(ForwardedProblem::NotAnAddress)
    );
    assert_eq!(
        x_forwarded_for(&["no address, 10.0.0.2"]),
        Err(ForwardedProblem::NotAnAddress)
    );
}

#[test]
fn h17_a_trusted_peer_without_the_header_is_the_client() {
    assert_eq!(x_forwarded_for(&[]).unwrap(), "ip:10.0.0.1");
    assert_eq!(forwarded(&[]).unwrap(), "ip:10.0.0.1");
}

#[test]
fn the_first_untrusted_address_from_the_right_is_the_client() {
    for (lines, client) in [
        (&["203.0.113.7"][..], "203.0.113.7"),
        (&["203.0.113.7, 10.0.0.2"], "203.0.113.7"),
        (&["203.0.113.7,10.0.0.3\t , \t10.0.0.2"], "203.0.113.7"),
        (&["192.0.2.99, 203.0.113.7, 10.0.0.2"], "203.0.113.7"),
        (&["10.9.9.9, 203.0.113.7"], "203.0.113.7"),
        (&["203.0.113.7, fd00::1, ::ffff:10.0.0.2"], "203.0.113.7"),
        // Lines are one list, in order.
        (&["192.0.2.99", "203.0.113.7", "10.0.0.2"], "203.0.113.7"),
        (&["203.0.113.7", "10.0.0.3, 10.0.0.2"], "203.0.113.7"),
        // All trusted: the leftmost.
        (&["10.0.0.3, 10.0.0.2"], "10.0.0.3"),
        (&["10.0.0.4, 10.0.0.3", "10.0.0.2"], "10.0.0.4"),
    ] {
        assert_eq!(
            x_forwarded_for(lines).unwrap(),
            format!("ip:{client}"),
            "{lines:?}"
        );
    }
}

#[test]
fn b58_a_forged_left_end_does_not_change_the_client() {
    for forged in [
        "192.0.2.1",
        "10.0.0.9",
        "",
        " ",
        ",",
        "no address",
        "\"",
        "\u{e9}",
        "for=\"",
        "203.0.113.7, \\",
    ] {
        let line = format!("{forged}, 203.0.113.7, 10.0.0.2");
        assert_eq!(
            x_forwarded_for(&[&line]).unwrap(),
            "ip:203.0.113.7",
            "{forged}"
        );
        assert_eq!(
            x_forwarded_for(&[forged, "203.0.113.7"]).unwrap(),
            "ip:203.0.113.7"
        );

        let line = format!("{forged}, for=203.0.113.7;proto=https, for=10.0.0.2");
        assert_eq!(forwarded(&[&line]).unwrap(), "ip:203.0.113.7", "{forged}");
        let line = format!("{forged},for=\"[2001:db8::1]:4711\"");
        assert_eq!(forwarded(&[&line]).unwrap(), "ip:2001:db8::/64", "{forged}");
        assert_eq!(
            forwarded(&[forged, "for=203.0.113.7"]).unwrap(),
            "ip:203.0.113.7"
        );
    }
}

#[test]
fn b59_ports_are_stripped() {
    for entry in ["1.2.3.4:5678", "1.2.3.4:1", "1.2.3.4:65535", "1.2.3.4"] {
        assert_eq!(x_forwarded_for(&[entry]).unwrap(), "ip:1.2.3.4", "{entry}");
    }
    for entry in [
        "2001:db8::1",
        "[2001:db8::1]",
        "[2001:db8::1]:4711",
        "2001:DB8:0:0::2",
    ] {
        assert_eq!(
            x_forwarded_for(&[entry]).unwrap(),
            "ip:2001:db8::/64",
            "{entry}"
        );
    }
}

#[test]
fn b60_mapped_and_translated_addresses_are_ipv4_by_bits_not_spelling() {
    for entry in [
        "::ffff:1.2.3.4",
        "::ffff:102:304",
        "0:0:0:0:0:ffff:0102:0304",
        "[::FFFF:1.2.3.4]:80",
        "64:ff9b::1.2.3.4",
        "64:ff9b::102:304",
    ] {
        assert_eq!(x_forwarded_for(&[entry]).unwrap(), "ip:1.2.3.4", "{entry}");
    }
    // A network that a provider chose, and neighbours of the two prefixes.
    assert_eq!(
        x_forwarded_for(&["64:ff9b:1::1.2.3.4"]).unwrap(),
        "ip:64:ff9b:1::/64"
    );
    assert_eq!(
        x_forwarded_for(&["64:ff9b::1:102:304"]).unwrap(),
        "ip:64:ff9b::/64"
    );
}

#[test]
fn a_translated_address_is_not_a_trusted_proxy() {
    assert_eq!(
        x_forwarded_for(&["203.0.113.7, 64:ff9b::10.0.0.2"]).unwrap(),
        "ip:10.0.0.2"
    );
}

#[test]
fn zones_are_left_out() {
    for entry in ["fe80::1%eth0", "[fe80::1%25eth0]:80", "fe80::1"] {
        assert_eq!(
            x_forwarded_for(&[entry]).unwrap(),
            "ip:fe80::/64",
            "{entry}"
        );
    }
    for entry in ["fe80::1%", "fe80::1%eth 0", "1.2.3.4%eth0", "%eth0"] {
        assert_eq!(
            x_forwarded_for(&[entry]),
            Err(ForwardedProblem::NotAnAddress),
            "{entry}"
        );
    }
}

#[test]
fn what_is_no_address_is_refused() {
    use ForwardedProblem::{Empty, NotAPort, NotAnAddress};
    for (entry, problem) in [
        ("", Empty),
        (" ", Empty),
        ("203.0.113.7,", Empty),
        ("unknown", NotAnAddress),
        ("_hidden", NotAnAddress),
        ("localhost", NotAnAddress),
        ("\"1.2.3.4\"", NotAnAddress),
        ("1.2.3", NotAnAddress),
        ("1.2.3.256", NotAnAddress),
        ("01.2.3.4", NotAnAddress),
        ("1.2.3.4.5", NotAnAddress),
        ("0x1.2.3.4", NotAnAddress),
        ("16909060", NotAnAddress),
        ("1.2.3.4/32", NotAnAddress),
        ("1.2.3.4 5.6.7.8", NotAnAddress),
        ("1.2.3.4:", NotAPort),
        ("1.2.3.4:http", NotAPort),
        ("1.2.3.4:123456", NotAPort),
        ("1.2.3.4:-1", NotAPort),
        ("1.2.3.4:80:80", NotAPort),
        ("[2001:db8::1", NotAnAddress),
        ("[2001:db8::1]80", NotAPort),
        ("[2001:db8::1]:", NotAPort),
        ("[1.2.3.4]", NotAnAddress),
        ("[]", NotAnAddress),
        ("2001:db8::1:", NotAnAddress),
        ("2001:db8::1::2", NotAnAddress),
        ("\u{661}.2.3.4", NotAnAddress),
        ("\u{e9}", NotAnAddress),
    ] {
        assert_eq!(x_forwarded_for(&[entry]), Err(problem), "{entry:?}");
    }
    let mut parts = request_from("10.0.0.1:80");
    parts.headers.insert(
        "x-forwarded-for",
        HeaderValue::from_bytes(b"\xff\xfe").unwrap(),
    );
    assert_eq!(
        problem_or_subject(subject(&behind_proxies(), &parts)),
        Err(NotAnAddress)
    );
}

#[test]
fn only_the_chosen_header_is_read() {
    let mut parts = proxied(ForwardedHeader::XForwardedFor, &["192.0.2.1"]);
    parts
        .headers
        .insert("forwarded", "for=203.0.113.7".parse().unwrap());
    let both = behind_proxies();
    assert_eq!(found(&both, &parts), "ip:192.0.2.1");
    assert_eq!(
        found(&both.clone().header(ForwardedHeader::Forwarded), &parts),
        "ip:203.0.113.7"
    );

    parts.headers.remove("forwarded");
    assert_eq!(
        found(&both.header(ForwardedHeader::Forwarded), &parts),
        "ip:10.0.0.1"
    );
}

#[test]
fn hops_count_from_the_right_whoever_the_peer_is() {
    let lines = &["192.0.2.99, 203.0.113.7", "10.0.0.2"];
    let hops = |n| {
        let mut parts = proxied(ForwardedHeader::XForwardedFor, lines);
        let with_peer = subject(&ForwardedAddress::hops(n).unwrap(), &parts);
        parts.extensions.clear();
        let without_peer = subject(&ForwardedAddress::hops(n).unwrap(), &parts);
        let answer = problem_or_subject(with_peer);
        assert_eq!(answer, problem_or_subject(without_peer));
        answer
    };
    assert_eq!(hops(1).unwrap(), "ip:10.0.0.2");
    assert_eq!(hops(2).unwrap(), "ip:203.0.113.7");
    assert_eq!(hops(3).unwrap(), "ip:192.0.2.99");
    assert_eq!(hops(4), Err(ForwardedProblem::TooFewEntries));
    assert_eq!(hops(255), Err(ForwardedProblem::TooFewEntries));
    assert_eq!(ForwardedAddress::hops(0).unwrap_err(), HopsError);
}

#[test]
fn an_empty_entry_is_counted_as_one_so_that_none_takes_its_place() {
    let parts = proxied(ForwardedHeader::XForwardedFor, &["192.0.2.99, , 10.0.0.2"]);
    let two = ForwardedAddress::hops(2).unwrap();
    assert_eq!(
        problem_or_subject(subject(&two, &parts)),
        Err(ForwardedProblem::Empty)
    );
}

#[test]
fn the_error_says_which_entry_is_wrong_and_what_would_be_right() {
    let long = "x".repeat(1_000);
    let parts = proxied(
        ForwardedHeader::XForwardedFor,
        &[&format!("{long}, 10.0.0.3"), "10.0.0.2"],
    );
    let KeyError::Forwarded(error) = subject(&behind_proxies(), &parts).unwrap_err() else {
        panic!("another error")
    };
    assert_eq!(error.header(), ForwardedHeader::XForwardedFor);
    assert_eq!(error.position(), 3);
    assert_eq!(
        error.to_string(),
        format!(
            "X-Forwarded-For, entry 3 from the right, \"{}...\": not an address; expected an IPv4 or IPv6 address, with \
             or without a port",
            "x".repeat(64)
        )
    );

    let error = subject(&ForwardedAddress::hops(2).unwrap(), &request()).unwrap_err();
    let KeyError::Forwarded(error) = error else {
        panic!("another error")
    };
    assert_eq!(
        error.to_string(),
        "X-Forwarded-For, entry 2 from the right, the header has fewer entries than there are proxies; expected one \
         from each"
    );
}

#[test]
fn the_peer_counts_as_a_proxy_by_its_bits() {
    let mut parts = request_from("[::ffff:10.0.0.1]:80");
    parts
        .headers
        .insert("x-forwarded-for", "203.0.113.7".parse().unwrap());
    assert_eq!(found(&behind_proxies(), &parts), "ip:203.0.113.7");
}

#[test]
fn b86_behind_proxies_without_a_peer_the_request_has_no_identity() {
    let error = subject(&behind_proxies(), &request()).unwrap_err();
    assert!(matches!(error, KeyError::NoPeerAddress));
}

#[test]
fn without_proxies_the_peer_is_the_client() {
    let nobody = ForwardedAddress::behind(TrustedProxies::default());
    assert_eq!(
        found(
            &nobody,
            &proxied(ForwardedHeader::XForwardedFor, &["1.2.3.4"])
        ),
        "ip:10.0.0.1"
    );
}

#[test]
fn the_ipv6_prefix_can_be_set() {
    let whole = behind_proxies().ipv6_prefix(Ipv6Prefix::WHOLE_ADDRESS);
    let parts = proxied(ForwardedHeader::XForwardedFor, &["2001:db8::1"]);
    assert_eq!(found(&whole, &parts), "ip:2001:db8::1");
}

#[test]
fn header_names_are_read_in_any_case() {
    assert_eq!(
        "x-forwarded-FOR".parse(),
        Ok(ForwardedHeader::XForwardedFor)
    );
    assert_eq!("forwarded".parse(), Ok(ForwardedHeader::Forwarded));
    let error = "X-Real-IP".parse::<ForwardedHeader>().unwrap_err();
    assert_eq!(
        error.to_string(),
        "\"X-Real-IP\" is no header that tells addresses; expected \"X-Forwarded-For\" or \"Forwarded\""
    );
}
