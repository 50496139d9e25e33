//! The elements of a `Forwarded` header.

use tollgate_axum::ForwardedProblem;

use crate::forwarded::forwarded;

#[test]
fn forwarded_elements_are_read_as_rfc_7239_writes_them() {
    for (lines, client) in [
        // The examples of section 4, with their addresses outside of the trusted networks.
        (
            &["for=192.0.2.60;proto=http;by=203.0.113.43"][..],
            "192.0.2.60",
        ),
        (&["For=\"[2001:db8:cafe::17]:4711\""], "2001:db8:cafe::/64"),
        (&["for=192.0.2.43, for=198.51.100.17"], "198.51.100.17"),
        // Names in any case, in any order, and other parameters.
        (&["proto=https;FOR=1.2.3.4"], "1.2.3.4"),
        (
            &["by=_proxy;for=\"1.2.3.4:80\";secret=a;host=\"a,b;for=\\\"x\\\"\""],
            "1.2.3.4",
        ),
        (&["host=\"\\\\\";for=1.2.3.4"], "1.2.3.4"),
        // Quoted where it need not be, and escaped where it need not be.
        (&["for=\"1.2.3.4\""], "1.2.3.4"),
        (&["for=\"1.\\2.3.4\""], "1.2.3.4"),
        (&["for=\"[2001:db8::1]\""], "2001:db8::/64"),
        (&["for=\"[::ffff:1.2.3.4]:_port\""], "1.2.3.4"),
        // Empty pairs, and whitespace around pairs.
        (&[";for=1.2.3.4;"], "1.2.3.4"),
        (&[" for=1.2.3.4 ; proto=http "], "1.2.3.4"),
        // From right to left over elements and lines.
        (
            &[
                "for=1.2.3.4, for=10.0.0.2;proto=http",
                "for=\"[fd00::1]:80\"",
            ],
            "1.2.3.4",
        ),
        (&["for=unknown, for=1.2.3.4"], "1.2.3.4"),
        (&["for=10.0.0.3,for=10.0.0.2"], "10.0.0.3"),
    ] {
        assert_eq!(
            forwarded(lines).unwrap(),
            format!("ip:{client}"),
            "{lines:?}"
        );
    }
}

#[test]
fn forwarded_elements_that_tell_no_address_are_refused() {
    use ForwardedProblem::{
        Empty, NoBrackets, NoFor, NotAPort, NotAnAddress, NotAnElement, Obfuscated, RepeatedFor,
        Unknown,
    };
    for (line, problem) in [
        ("", Empty),
        ("for=1.2.3.4,", Empty),
        ("for=unknown", Unknown),
        ("for=\"unknown:80\"", Unknown),
        ("for=_hidden", Obfuscated),
        ("for=\"_hidden:_port\"", Obfuscated),
        ("proto=https", NoFor),
        (";;", NoFor),
        ("for=1.2.3.4;FOR=1.2.3.4", RepeatedFor),
        ("for=\"2001:db8::1\"", NoBrackets),
        ("for=\"1.2.3.4:x\"", NotAPort),
        ("for=\"1.2.3.4:_\"", NotAPort),
        ("for=\"\"", NotAnAddress),
        ("for=localhost", NotAnAddress),
        ("for=1.2.3.4:80", NotAnElement),
        ("for=[2001:db8::1]", NotAnElement),
        ("for", NotAnElement),
        ("for=", NotAnElement),
        ("=1.2.3.4", NotAnElement),
        ("for =1.2.3.4", NotAnElement),
        ("for= 1.2.3.4", NotAnElement),
        ("1.2.3.4", NotAnElement),
        ("for=1.2.3.4 proto=http", NotAnElement),
        ("for=\"1.2.3.4\"5", NotAnElement),
        ("for=\"1.2.3.4", NotAnElement),
        ("for=1.2.3.4\"", NotAnElement),
        ("for=\"1.2.3.4\\\"", NotAnElement),
        ("for='1.2.3.4'", NotAnAddress),
        ("f\u{f6}r=1.2.3.4", NotAnElement),
    ] {
        assert_eq!(forwarded(&[line]), Err(problem), "{line:?}");
    }
}
