//! API keys, users, everybody, and combinations.

use http::request::Parts;
use http::{HeaderName, HeaderValue};
use tollgate_axum::{
    AsyncHeaderKey, ExtensionKey, GlobalKey, HeaderKey, KeyError, KeyExtractor, PeerAddress,
    UnvalidatedHeaderKey, from_async_fn,
};
use tollgate_core::join_subject;

use crate::support::{found, request, request_from, subject};

const API_KEY: HeaderName = HeaderName::from_static("x-api-key");

/// Only `s3cret` is a valid key, and it is acme's.
fn by_api_key() -> impl KeyExtractor {
    HeaderKey::new(API_KEY, |key: &str| (key == "s3cret").then_some("acme"))
}

fn by_api_key_looked_up() -> impl KeyExtractor {
    AsyncHeaderKey::new(API_KEY, |key: &str| {
        let known = key == "s3cret";
        async move {
            tokio::task::yield_now().await;
            known.then_some("acme")
        }
    })
}

fn with_api_keys(keys: &[&[u8]]) -> Parts {
    let mut parts = request_from("203.0.113.7:80");
    for key in keys {
        parts
            .headers
            .append(API_KEY, HeaderValue::from_bytes(key).unwrap());
    }
    parts
}

#[derive(Clone)]
struct User {
    id: u64,
}

fn with_user(id: u64) -> Parts {
    let mut parts = request_from("203.0.113.7:80");
    parts.extensions.insert(User { id });
    parts
}

#[test]
fn a_valid_api_key_is_counted_as_its_account() {
    let parts = with_api_keys(&[b"s3cret"]);
    assert_eq!(found(&by_api_key(), &parts), "header:x-api-key:id:acme");
    assert_eq!(
        found(&by_api_key_looked_up(), &parts),
        "header:x-api-key:id:acme"
    );
}

#[test]
fn a_made_up_api_key_per_request_buys_nothing() {
    let or_address = by_api_key().or(PeerAddress::new());
    let looked_up_or_address = by_api_key_looked_up().or(PeerAddress::new());
    for number in 0..100 {
        let parts = with_api_keys(&[format!("guess-{number}").as_bytes()]);
        assert_eq!(found(&or_address, &parts), "ip:203.0.113.7");
        assert_eq!(found(&looked_up_or_address, &parts), "ip:203.0.113.7");
    }
}

#[test]
fn a_missing_empty_repeated_or_unreadable_api_key_is_no_identity() {
    let long = vec![b'x'; 100_000];
    for keys in [
        vec![],
        vec![&b""[..]],
        vec![b"s3cret", b"s3cret"],
        vec![b"s3cret", b""],
        vec![b"s3cret\xff"],
        vec!["s3cr\u{e9}t".as_bytes()],
        vec![&long],
    ] {
        let parts = with_api_keys(&keys);
        assert_eq!(subject(&by_api_key(), &parts).unwrap(), None);
        assert_eq!(subject(&by_api_key_looked_up(), &parts).unwrap(), None);
    }
}

#[test]
fn an_unvalidated_header_is_taken_as_it_is_but_never_empty_or_twice() {
    let unvalidated = UnvalidatedHeaderKey::new(API_KEY);
    assert_eq!(
        found(&unvalidated, &with_api_keys(&[b"anything"])),
        "header:x-api-key:anything"
    );
    for keys in [vec![], vec![&b""[..]], vec![b"a", b"b"]] {
        assert_eq!(subject(&unvalidated, &with_api_keys(&keys)).unwrap(), None);
    }
    let key = unvalidated
        .extract_now(&with_api_keys(&[b"\xff"]))
        .unwrap()
        .unwrap()
        .unwrap();
    assert_eq!(key.subject(), b"header:x-api-key:\xff");
}

#[test]
fn a_validator_that_names_nobody_is_an_error() {
    let empty = HeaderKey::new(API_KEY, |_: &str| "");
    let error = subject(&empty, &with_api_keys(&[b"s3cret"])).unwrap_err();
    assert!(matches!(error, KeyError::EmptyIdentity));
}

#[test]
fn a_user_is_counted_by_what_the_extension_says() {
    let by_user = ExtensionKey::<User, _>::new(|user| user.id);
    assert_eq!(found(&by_user, &with_user(7)), "ext:id:7");
    assert_eq!(subject(&by_user, &request()).unwrap(), None);
}

#[test]
fn the_first_identity_of_several_counts() {
    let any = ExtensionKey::<User, _>::new(|user| user.id)
        .or(by_api_key())
        .or(PeerAddress::new());
    assert_eq!(found(&any, &with_user(7)), "ext:id:7");
    assert_eq!(
        found(&any, &with_api_keys(&[b"s3cret"])),
        "header:x-api-key:id:acme"
    );
    assert_eq!(found(&any, &with_api_keys(&[])), "ip:203.0.113.7");
    assert!(matches!(
        subject(&any, &request()),
        Err(KeyError::NoPeerAddress)
    ));
}

#[test]
fn an_error_is_not_a_missing_identity() {
    let broken = |_: &Parts| Err::<u64, _>(KeyError::other("the session store is down"));
    let or_address = broken.or(PeerAddress::new());
    let parts = request_from("203.0.113.7:80");
    assert!(matches!(
        subject(&or_address, &parts),
        Err(KeyError::Other(_))
    ));
    assert!(matches!(
        subject(&broken.and(PeerAddress::new()), &parts),
        Err(KeyError::Other(_))
    ));
    assert!(matches!(
        subject(&PeerAddress::new().and(broken), &parts),
        Err(KeyError::Other(_))
    ));
}

#[test]
fn an_extractor_that_waits_makes_its_combinations_wait() {
    let parts = with_api_keys(&[b"s3cret"]);
    let waiting = from_async_fn(|_: &Parts| async { Some(7_u64) });
    assert!(
        waiting
            .clone()
            .or(by_api_key())
            .extract_now(&parts)
            .is_none()
    );
    assert!(
        waiting
            .clone()
            .and(by_api_key())
            .extract_now(&parts)
            .is_none()
    );
    assert!(
        by_api_key()
            .and(waiting.clone())
            .extract_now(&parts)
            .is_none()
    );
    assert!(waiting.clone().named("user").extract_now(&parts).is_none());
    // Where the first one has the answer, the second is not asked.
    assert_eq!(
        found(&by_api_key().or(waiting.clone()), &parts),
        "header:x-api-key:id:acme"
    );
    assert!(
        by_api_key()
            .or(waiting.clone())
            .extract_now(&parts)
            .is_some()
    );
    assert_eq!(
        found(&by_api_key().or(waiting), &with_api_keys(&[])),
        "id:7"
    );
}

#[test]
fn a_pair_is_counted_apart_from_every_other_pair() {
    let tenant = |parts: &Parts| {
        let tenant = parts.headers.get("x-tenant")?;
        Some(tenant.as_bytes().to_vec())
    };
    let both = tenant.and(PeerAddress::new());
    let mut parts = request_from("203.0.113.7:80");
    assert_eq!(subject(&both, &parts).unwrap(), None);
    parts.headers.insert("x-tenant", "acme".parse().unwrap());
    let joined = join_subject(["id:acme", "ip:203.0.113.7"]);
    assert_eq!(
        found(&both, &parts).as_bytes(),
        [b"and:", &*joined].concat()
    );
    assert_ne!(
        found(&both, &parts),
        found(&PeerAddress::new().and(tenant), &parts)
    );
}

#[test]
fn names_keep_the_same_identities_apart() {
    let user = ExtensionKey::<User, _>::new(|user| user.id).named("user");
    let tenant = ExtensionKey::<User, _>::new(|user| user.id).named("tenant");
    let joined = join_subject(["user", "ext:id:7"]);
    assert_eq!(
        found(&user, &with_user(7)).as_bytes(),
        [b"named:", &*joined].concat()
    );
    assert_ne!(found(&user, &with_user(7)), found(&tenant, &with_user(7)));
    assert_eq!(subject(&user, &request()).unwrap(), None);
}

#[test]
fn everybody_shares_a_counter_only_where_it_is_asked_for() {
    assert_eq!(found(&GlobalKey, &request()), "all:");
    assert_eq!(found(&GlobalKey, &request_from("203.0.113.7:80")), "all:");
}
