//! Closures as extractors, and what they may return.

use std::error::Error;
use std::net::{IpAddr, Ipv4Addr};

use http::HeaderValue;
use http::request::Parts;
use tollgate_axum::{IntoKey, KeyError, KeyExtractor, RequestKey, from_async_fn};

use crate::support::{found, request, subject};

fn session_of(parts: &Parts) -> Option<String> {
    let session = parts.headers.get("x-session")?;
    Some(session.to_str().ok()?.to_owned())
}

#[test]
fn a_closure_names_the_client() {
    let mut parts = request();
    assert_eq!(subject(&session_of, &parts).unwrap(), None);
    parts
        .headers
        .insert("x-session", HeaderValue::from_static("abc"));
    assert_eq!(found(&session_of, &parts), "id:abc");
}

#[test]
fn a_closure_may_wait() {
    let by_user = from_async_fn(|parts: &Parts| {
        let session = session_of(parts);
        async move {
            tokio::task::yield_now().await;
            session.map(|session| session.len())
        }
    });
    let mut parts = request();
    assert!(by_user.extract_now(&parts).is_none());
    assert_eq!(subject(&by_user, &parts).unwrap(), None);
    parts
        .headers
        .insert("x-session", HeaderValue::from_static("abc"));
    assert_eq!(found(&by_user, &parts), "id:3");
}

#[test]
fn what_a_closure_returns_never_meets_an_address() {
    let address: IpAddr = Ipv4Addr::new(203, 0, 113, 7).into();
    let spelled = |text: &'static str| found(&move |_: &Parts| text, &request());
    assert_eq!(
        found(&move |_: &Parts| address, &request()),
        "ip:203.0.113.7"
    );
    assert_eq!(spelled("203.0.113.7"), "id:203.0.113.7");
    assert_eq!(spelled("ip:203.0.113.7"), "id:ip:203.0.113.7");
}

#[test]
fn b63_an_empty_identity_is_an_error_and_never_a_key() {
    for empty in [
        "".into_key(),
        String::new().into_key(),
        Vec::new().into_key(),
        Some("").into_key(),
    ] {
        assert!(matches!(empty, Err(KeyError::EmptyIdentity)), "{empty:?}");
    }
    assert!(matches!(RequestKey::new([]), Err(KeyError::EmptyIdentity)));
    assert!(matches!(
        subject(&|_: &Parts| "", &request()),
        Err(KeyError::EmptyIdentity)
    ));
}

#[test]
fn an_error_of_the_application_keeps_its_cause() {
    let broken = |_: &Parts| "x".parse::<u64>().map_err(KeyError::other);
    let error = subject(&broken, &request()).unwrap_err();
    assert_eq!(
        error.source().unwrap().to_string(),
        "invalid digit found in string"
    );
}

#[test]
fn integers_are_counted_by_their_digits() {
    assert_eq!(
        u128::MAX.into_key().unwrap(),
        Some(RequestKey::new(u128::MAX.to_string()).unwrap())
    );
    assert_eq!(
        (-7_i8).into_key().unwrap(),
        Some(RequestKey::new("-7").unwrap())
    );
}

#[test]
fn any_bytes_but_none_are_an_identity() {
    let key = RequestKey::new([0, 0xff, b':']).unwrap();
    assert_eq!(key.subject(), b"id:\0\xff:");
    assert_eq!(format!("{key:?}"), r"RequestKey(id:\x00\xff:)");
}
