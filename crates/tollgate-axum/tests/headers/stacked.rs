//! Layers around layers, and handlers that set headers of their own.

use http::{HeaderValue, Response};
use tollgate_axum::Headers;
use tollgate_core::Algorithm;

use crate::setup::{Gate, lists, numbers, policy, text};

fn gate(name: &str, quota: &str) -> Gate {
    Gate::new(policy(name, Algorithm::FixedWindow, quota))
}

fn write(gate: &Gate, headers: &Headers, response: &mut Response<()>) {
    headers.write(&gate.hit(), b"user:42", response);
}

#[test]
fn two_nested_policies_are_both_listed_the_outer_one_first() {
    let mut response = Response::new(());
    write(
        &gate("inner", "3/minute"),
        &Headers::default(),
        &mut response,
    );
    write(
        &gate("outer", "2/minute"),
        &Headers::default(),
        &mut response,
    );
    let expected = (
        r#""outer";q=2;w=60, "inner";q=3;w=60"#,
        r#""outer";r=1;t=60, "inner";r=2;t=60"#,
    );
    assert_eq!(lists(response.headers()), Some(expected));
    assert_eq!(numbers(response.headers()), Some((2, 1, 60)));
}

#[test]
fn the_policy_that_binds_may_be_the_inner_one() {
    let mut response = Response::new(());
    write(&gate("inner", "1/hour"), &Headers::default(), &mut response);
    write(
        &gate("middle", "9/minute"),
        &Headers::default(),
        &mut response,
    );
    write(
        &gate("outer", "1/minute"),
        &Headers::default(),
        &mut response,
    );
    // The same is left under both; the outer one comes first.
    assert_eq!(numbers(response.headers()), Some((1, 0, 60)));

    let (inner, outer) = (gate("inner", "1/hour"), gate("outer", "5/minute"));
    let _ = inner.hit();
    let mut response = Response::new(());
    write(&inner, &Headers::default(), &mut response);
    write(&outer, &Headers::default(), &mut response);
    assert_eq!(numbers(response.headers()), Some((1, 0, 3_600)));
}

#[test]
fn each_layer_says_of_its_own_policies_what_it_is_set_to_say() {
    let mut response = Response::new(());
    write(
        &gate("inner", "1/hour"),
        &Headers::default().x_rate_limit(false),
        &mut response,
    );
    write(&gate("silent", "1/day"), &Headers::none(), &mut response);
    write(
        &gate("outer", "5/minute"),
        &Headers::default().rate_limit(false),
        &mut response,
    );
    assert_eq!(numbers(response.headers()), Some((5, 4, 60)));
    assert_eq!(
        lists(response.headers()).unwrap().0,
        r#""inner";q=1;w=3600"#
    );
}

#[test]
fn what_a_handler_has_set_is_left_as_it_is_and_not_doubled() {
    for (name, written) in [
        ("x-ratelimit-limit", 2),
        ("x-ratelimit-remaining", 2),
        ("x-ratelimit-reset", 2),
        ("ratelimit", 3),
        ("ratelimit-policy", 3),
    ] {
        let mut response = Response::new(());
        response
            .headers_mut()
            .insert(name, HeaderValue::from_static("7"));
        write(
            &gate("inner", "3/minute"),
            &Headers::default(),
            &mut response,
        );
        write(
            &gate("outer", "2/minute"),
            &Headers::default(),
            &mut response,
        );
        assert_eq!(text(response.headers(), name), Some("7"));
        assert_eq!(
            response.headers().len(),
            1 + written,
            "{:?}",
            response.headers()
        );
    }
}

/// A layer inside has written one family; in between somebody sets the other.
#[test]
fn a_family_that_appears_between_two_layers_is_not_theirs() {
    let mut response = Response::new(());
    write(
        &gate("inner", "3/minute"),
        &Headers::default().rate_limit(false),
        &mut response,
    );
    response
        .headers_mut()
        .insert("ratelimit", HeaderValue::from_static("\"theirs\";r=1"));
    write(
        &gate("outer", "2/minute"),
        &Headers::default(),
        &mut response,
    );
    assert_eq!(
        text(response.headers(), "ratelimit"),
        Some("\"theirs\";r=1")
    );
    assert_eq!(text(response.headers(), "ratelimit-policy"), None);
    assert_eq!(numbers(response.headers()), Some((2, 1, 60)));
}
