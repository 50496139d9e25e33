//! Which spelling a client gets for what it says it accepts.

use http::{HeaderMap, HeaderValue, Method, header};
use proptest::prelude::*;
use tollgate_axum::{Denial, DenialFormat};

const PROBLEM: &str = "application/problem+json";
const JSON: &str = "application/json";
const TEXT: &str = "text/plain; charset=utf-8";

fn accepting(values: &[&[u8]]) -> HeaderMap {
    let values = values
        .iter()
        .map(|value| HeaderValue::from_bytes(value).expect("a value"));
    values.map(|value| (header::ACCEPT, value)).collect()
}

fn chosen(request: &HeaderMap, format: DenialFormat) -> String {
    let response = Denial::internal().to_response(format, &Method::GET, request);
    let content_type = &response.headers()[header::CONTENT_TYPE];
    content_type
        .to_str()
        .expect("a content type is ASCII")
        .to_owned()
}

fn negotiated(accept: &str) -> String {
    chosen(&accepting(&[accept.as_bytes()]), DenialFormat::Negotiate)
}

#[test]
fn a_request_that_says_nothing_gets_a_problem_document() {
    assert_eq!(chosen(&HeaderMap::new(), DenialFormat::Negotiate), PROBLEM);
    assert_eq!(negotiated(""), PROBLEM);
}

#[test]
fn what_is_asked_for_is_what_comes() {
    for (accept, expected) in [
        ("application/problem+json", PROBLEM),
        ("application/json", JSON),
        ("text/plain", TEXT),
        ("TEXT/Plain", TEXT),
        ("text/plain;charset=utf-8", TEXT),
        ("text/plain, text/html", TEXT),
    ] {
        assert_eq!(negotiated(accept), expected, "{accept}");
    }
}

#[test]
fn weights_decide() {
    for (accept, expected) in [
        ("application/problem+json;q=0.1, text/plain;q=0.2", TEXT),
        ("text/plain;q=0.2, application/json;q=0.3", JSON),
        ("text/plain;q=0.999, application/json;q=1.000", JSON),
        ("text/plain; q=0.9 , application/problem+json; Q=0.8", TEXT),
        ("application/json;version=1;q=0.5, text/plain;q=0.4", JSON),
        // A tie: the order in which the spellings are preferred, not that of the header.
        (
            "text/plain, application/json, application/problem+json",
            PROBLEM,
        ),
        ("text/plain;q=0.5, application/json;q=0.5", JSON),
        // The same range twice: the better of its weights.
        (
            "text/plain;q=0.9, application/json;q=0.5, text/plain;q=0.1",
            TEXT,
        ),
        (
            "text/plain;q=0.1, application/json;q=0.5, text/plain;q=0.9",
            TEXT,
        ),
        // Weight zero is a refusal.
        (
            "application/problem+json;q=0, application/json;q=0.001",
            JSON,
        ),
    ] {
        assert_eq!(negotiated(accept), expected, "{accept}");
    }
}

#[test]
fn a_closer_range_goes_before_a_wider_one_in_any_order() {
    for (accept, expected) in [
        ("*/*", PROBLEM),
        ("application/*", PROBLEM),
        ("text/*", TEXT),
        ("text/*, application/*;q=0.5", TEXT),
        ("*/*;q=0.1, application/json", JSON),
        ("text/plain, */*;q=0.1", TEXT),
        ("application/*, application/problem+json;q=0.5", JSON),
        ("application/problem+json;q=0.5, application/*", JSON),
        ("*/*, application/*;q=0", TEXT),
        ("*/*;q=0, text/*;q=0.1", TEXT),
    ] {
        assert_eq!(negotiated(accept), expected, "{accept}");
    }
}

/// What well-known clients send.
#[test]
fn well_known_clients_get_what_they_can_read() {
    for (accept, expected) in [
        // curl, Go, Python
        ("*/*", PROBLEM),
        // browsers
        (
            "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8",
            PROBLEM,
        ),
        // axios
        ("application/json, text/plain, */*", PROBLEM),
        // jQuery
        ("application/json, text/javascript, */*; q=0.01", JSON),
    ] {
        assert_eq!(negotiated(accept), expected, "{accept}");
    }
}

#[test]
fn who_accepts_none_of_them_or_cannot_be_understood_gets_a_problem_document() {
    for accept in [
        "image/png",
        "text/html",
        "*/*;q=0",
        "text/plain;q=0",
        "text",
        "*",
        "text/plain;q=2",
        "text/plain;q=1.001",
        "text/plain;q=-1",
        "text/plain;q=0.1234",
        "text/plain;q=",
        "text/plain;q=high",
        "text/plain, (",
        "*/plain",
    ] {
        assert_eq!(negotiated(accept), PROBLEM, "{accept}");
    }
    let request = accepting(&[b"text/plain, \xff\xfe"]);
    assert_eq!(chosen(&request, DenialFormat::Negotiate), PROBLEM);
}

#[test]
fn several_headers_are_one_list() {
    let request = accepting(&[b"application/json;q=0.5", b"text/plain;q=0.6", b"text/html"]);
    assert_eq!(chosen(&request, DenialFormat::Negotiate), TEXT);
}

#[test]
fn a_fixed_format_does_not_look_at_the_request() {
    for (format, expected) in [
        (DenialFormat::Problem, PROBLEM),
        (DenialFormat::Json, JSON),
        (DenialFormat::Text, TEXT),
    ] {
        for accept in ["*/*", "image/png", "application/json", "text/plain"] {
            assert_eq!(chosen(&accepting(&[accept.as_bytes()]), format), expected);
        }
    }
}

proptest! {
    #[test]
    fn any_bytes_are_answered(values in proptest::collection::vec("[ -~\t\u{80}-\u{ff}]{0,80}", 0..4)) {
        let values: Vec<_> = values.iter().map(String::as_bytes).collect();
        let chosen = chosen(&accepting(&values), DenialFormat::Negotiate);
        prop_assert!([PROBLEM, JSON, TEXT].contains(&chosen.as_str()));
    }

    #[test]
    fn the_order_of_the_ranges_does_not_matter(
        ranges in proptest::sample::subsequence(
            vec![
                "*/*;q=0.1", "application/*;q=0.4", "text/*;q=0.3", "text/plain;q=0.2",
                "application/json;q=0.5", "application/problem+json;q=0.05", "image/png",
            ],
            1..=7,
        ).prop_flat_map(|ranges| (Just(ranges.clone()), Just(ranges).prop_shuffle())),
    ) {
        let (one, other) = ranges;
        prop_assert_eq!(negotiated(&one.join(", ")), negotiated(&other.join(", ")));
    }
}
