//! A call is bounded, and its error says what may have become of it.

#![expect(clippy::unwrap_used, reason = "a helper of a test fails with the test")]

mod support;

use std::time::Duration;

use support::line::LineStore;
use support::{FarStore, Mood};
use tokio::io::AsyncReadExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::Instant;
use tollgate_core::{ErrorKind, Key, Limiter, Policy, Quota, Space, Store};
use tollgate_layers::Timeout;
use tollgate_memory::MemoryStore;

const MILLI: Duration = Duration::from_millis(1);

fn hanging(bound: Duration) -> Limiter<Timeout<FarStore>> {
    let store = FarStore::new();
    store.be(Mood::Hangs);
    let store = Timeout::within(store, bound).unwrap().name("far");
    Limiter::new(store, Quota::per_minute(3))
}

/// The store's trouble behind an answer of the failure mode.
fn trouble(decision: &tollgate_core::Decision<'_>) -> (ErrorKind, bool, String) {
    let error = decision.error().unwrap();
    (error.kind(), error.may_have_charged(), error.to_string())
}

#[tokio::test(start_paused = true)]
async fn a_hit_on_a_store_that_hangs_ends_at_the_bound_and_may_have_been_charged() {
    let limiter = hanging(30 * MILLI);
    let started = Instant::now();
    let (kind, may_have_charged, text) = trouble(&limiter.hit("alice").await.unwrap());
    assert_eq!(started.elapsed(), 30 * MILLI);
    assert_eq!((kind, may_have_charged), (ErrorKind::Timeout, true));
    assert_eq!(
        text,
        "far: store timed out: no answer within 30ms; it may have been charged"
    );
}

#[tokio::test(start_paused = true)]
async fn a_peek_that_hangs_charged_nothing() {
    let limiter = hanging(30 * MILLI);
    let (kind, may_have_charged, text) = trouble(&limiter.peek("alice").await.unwrap());
    assert_eq!((kind, may_have_charged), (ErrorKind::Timeout, false));
    assert!(text.ends_with("within 30ms; nothing was charged"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn a_settlement_that_hangs_may_have_been_charged() {
    let store = FarStore::new();
    let limiter = Limiter::new(Timeout::new(store.clone()), Quota::per_minute(3));
    let receipt = limiter
        .reserve("alice", 2)
        .await
        .unwrap()
        .into_receipt()
        .unwrap();
    store.be(Mood::Hangs);
    let error = limiter.settle(receipt, 3).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Timeout);
    assert!(error.may_have_charged());
}

#[tokio::test(start_paused = true)]
async fn a_reset_that_hangs_ends_at_the_bound_and_charged_nothing() {
    let limiter = hanging(Timeout::<FarStore>::DEFAULT);
    let started = Instant::now();
    let error = limiter.reset("alice").await.unwrap_err();
    assert_eq!(started.elapsed(), 100 * MILLI);
    assert_eq!(error.kind(), ErrorKind::Timeout);
    assert!(!error.may_have_charged());
    assert!(
        error
            .to_string()
            .contains("the keys may have been forgotten"),
        "{error}"
    );
}

#[tokio::test(start_paused = true)]
async fn an_answer_within_the_bound_is_handed_on() {
    let store = FarStore::new();
    let limiter = Limiter::new(
        Timeout::within(store.clone(), 30 * MILLI).unwrap(),
        Quota::per_minute(3),
    );
    store.be(Mood::Takes(29 * MILLI));
    assert_eq!(limiter.hit("alice").await.unwrap().remaining(), 2);
    store.be(Mood::Fails(ErrorKind::Overloaded));
    let (kind, ..) = trouble(&limiter.hit("alice").await.unwrap());
    assert_eq!(kind, ErrorKind::Overloaded, "the store's own errors too");
}

#[test]
fn a_call_that_is_answered_at_once_needs_no_timer_and_no_runtime() {
    let limiter = Limiter::new(Timeout::new(MemoryStore::new()), Quota::per_minute(1));
    let hit = std::pin::pin!(limiter.hit("alice"));
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    let std::task::Poll::Ready(decision) = hit.poll(&mut context) else {
        panic!("a memory store answers at once");
    };
    assert!(decision.unwrap().is_allowed());
    assert!(!limiter.hit_now("alice").unwrap().is_allowed());
}

#[test]
fn a_call_that_has_to_wait_outside_of_a_runtime_is_refused_instead_of_panicking() {
    let limiter = hanging(30 * MILLI);
    let hit = std::pin::pin!(limiter.hit("alice"));
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    let std::task::Poll::Ready(Err(error)) = hit.poll(&mut context) else {
        panic!("the call is given up");
    };
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.may_have_charged());
    assert!(error.to_string().contains("no tokio runtime"), "{error}");
}

#[test]
fn a_bound_that_makes_no_sense_is_refused() {
    let most = Timeout::<MemoryStore>::MAX;
    for bound in [Duration::ZERO, MILLI / 2, most + MILLI, Duration::MAX] {
        let error = Timeout::within(MemoryStore::new(), bound).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        assert!(
            error.to_string().contains("between 1ms and 3600s"),
            "{error}"
        );
    }
    for bound in [MILLI, most] {
        assert_eq!(
            Timeout::within(MemoryStore::new(), bound).unwrap().bound(),
            bound
        );
    }
}

#[tokio::test]
async fn a_peer_that_keeps_the_connection_open_and_says_nothing_is_given_up() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (connection, silent) = tokio::join!(TcpStream::connect(address), listener.accept());
    let (mut peer, _) = silent.unwrap();
    let store = LineStore::new(connection.unwrap());
    let store = Timeout::within(store, 20 * MILLI).unwrap();

    let policy = Policy::from(Quota::per_minute(3));
    let space = Space::new("", "", &policy);
    let key = Key::new(&space, b"alice").unwrap();
    let error = store.reset(&[key]).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Timeout);
    let limiter = Limiter::new(store, policy);
    let (kind, ..) = trouble(&limiter.hit("alice").await.unwrap());
    assert_eq!(kind, ErrorKind::Timeout);

    let mut heard = [0; 8];
    peer.read_exact(&mut heard).await.unwrap();
    assert_eq!(&heard, b"hit\nhit\n", "the peer was asked, and alive");
}
