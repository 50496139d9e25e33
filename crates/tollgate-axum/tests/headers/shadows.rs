//! Policies in shadow mode limit nobody, so clients hear of them only where they shall.

use http::Response;
use tollgate_axum::{Denial, Headers};
use tollgate_core::{Algorithm, Policies, Policy};

use crate::setup::{Gate, headers_of, list, lists, numbers, policy, respond, text};

fn window(name: &str, quota: &str) -> Policy {
    policy(name, Algorithm::FixedWindow, quota)
}

fn gate(policies: impl IntoIterator<Item = Policy>) -> Gate {
    Gate::new(Policies::new(policies).expect("policies of different names"))
}

#[test]
fn a_shadow_is_not_listed_and_never_binds() {
    let gate = gate([
        window("planned", "1/hour").shadow(),
        window("now", "5/minute"),
    ]);
    for left in [4, 3] {
        let headers = headers_of(&gate.hit());
        assert_eq!(numbers(&headers), Some((5, left, 60)));
        let limit = format!(r#""now";r={left};t=60"#);
        assert_eq!(lists(&headers), Some((r#""now";q=5;w=60"#, limit.as_str())));
        assert_eq!(text(&headers, "x-ratelimit-shadow"), None);
    }
}

#[test]
fn shadows_that_would_have_denied_are_named_on_request() {
    let hostile = r#"a "b\"#;
    let gate = gate([
        window("planned", "1/hour").shadow(),
        window("now", "2/minute"),
        window("roomy", "9/hour").shadow(),
        window(hostile, "1/day").shadow(),
    ]);
    let headers = Headers::default().shadow(true);
    let first = respond(&gate.hit(), &headers);
    assert_eq!(text(first.headers(), "x-ratelimit-shadow"), None);

    let second = respond(&gate.hit(), &headers);
    assert_eq!(second.status(), 200);
    let names: Vec<_> = list(second.headers(), "x-ratelimit-shadow");
    let names: Vec<_> = names.into_iter().map(|item| item.name).collect();
    assert_eq!(names, ["planned", hostile]);

    // A denial is still the enforced policy's alone.
    let decision = gate.hit();
    let third = respond(&decision, &headers);
    assert_eq!(third.status(), 429);
    assert_eq!(Denial::of(&decision).expect("a denial").violated(), ["now"]);
    assert_eq!(numbers(third.headers()), Some((2, 0, 60)));
}

#[test]
fn where_everything_is_in_shadow_mode_there_are_no_numbers() {
    let gate = gate([window("planned", "0/hour").shadow()]);
    let response = respond(&gate.hit(), &Headers::default().shadow(true));
    assert_eq!(response.status(), 200);
    assert_eq!(response.headers().len(), 1);
    assert_eq!(
        text(response.headers(), "x-ratelimit-shadow"),
        Some(r#""planned""#)
    );
    assert_eq!(headers_of(&gate.hit()).len(), 0);
}

#[test]
fn stacked_layers_name_their_shadows_in_one_list() {
    let [inner, outer] = ["inner", "outer"].map(|name| gate([window(name, "0/hour").shadow()]));
    let headers = Headers::none().shadow(true);
    let mut response = Response::new(());
    headers.write(&inner.hit(), b"user:42", &mut response);
    headers.write(&outer.hit(), b"user:42", &mut response);
    assert_eq!(
        text(response.headers(), "x-ratelimit-shadow"),
        Some(r#""outer", "inner""#)
    );
}
