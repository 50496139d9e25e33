//! Synchronous code can ask a limiter on any thread.

#![expect(clippy::unwrap_used, reason = "a helper of a test fails with the test")]

mod support;

use std::sync::mpsc;
use std::time::Duration;

use support::line::{LineStore, serve};
use support::{FarStore, Mood};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Runtime};
use tollgate_core::{
    Acquire, Algorithm, ErrorKind, FailureMode, Limiter, Policy, Quota, SharedStore,
};
use tollgate_layers::{Blocking, Timeout};
use tollgate_memory::MemoryStore;

const MILLI: Duration = Duration::from_millis(1);
/// Longer than any call here lasts, and short enough for a test that hangs.
const LONG: Duration = Duration::from_secs(60);

/// Limiters of two a minute: one whose store is a server, one whose store takes its time, one in the process.
fn limiters() -> Vec<Blocking> {
    let quota = Quota::per_minute(2);
    let far = FarStore::new();
    far.be(Mood::Takes(3 * MILLI));
    let address = serve();
    let connected = Blocking::connect(async move {
        let store = SharedStore::new(LineStore::connect(address).await?);
        Ok(Limiter::new(store, quota))
    });
    let shared = |store| Limiter::new(store, quota);
    vec![
        connected.unwrap(),
        Blocking::new(shared(SharedStore::new(Timeout::new(far)))).unwrap(),
        Blocking::new(shared(SharedStore::new(MemoryStore::new()))).unwrap(),
    ]
}

/// What synchronous code does, wherever it runs.
fn use_limiters() {
    for limiter in limiters() {
        assert_eq!(limiter.hit("alice").unwrap().remaining(), 1);
        assert_eq!(limiter.peek("alice").unwrap().remaining(), 1);
        assert!(limiter.hit("alice").unwrap().is_allowed());
        let denied = limiter.hit("alice").unwrap();
        assert!(
            !denied.is_allowed() && denied.error().is_none(),
            "{denied:?}"
        );
        assert!(limiter.reset("alice").unwrap());
    }
}

/// Runs `test` on a thread of its own and fails if it hangs.
fn within_reason(test: impl FnOnce() + Send + 'static) {
    let (done, wait) = mpsc::channel();
    let thread = std::thread::spawn(move || {
        test();
        done.send(()).unwrap();
    });
    if wait.recv_timeout(LONG) == Err(mpsc::RecvTimeoutError::Timeout) {
        panic!("it hangs");
    }
    thread.join().unwrap();
}

fn current_thread() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

fn one_worker() -> Runtime {
    let mut builder = Builder::new_multi_thread();
    builder.worker_threads(1).enable_all().build().unwrap()
}

#[test]
fn a_plain_thread_may_ask() {
    within_reason(use_limiters);
}

#[test]
fn a_task_on_a_current_thread_runtime_may_ask() {
    within_reason(|| current_thread().block_on(async { use_limiters() }));
    within_reason(|| {
        current_thread().block_on(async { tokio::spawn(async { use_limiters() }).await.unwrap() });
    });
}

#[test]
fn a_task_on_the_only_worker_of_a_multi_thread_runtime_may_ask() {
    within_reason(|| {
        one_worker().block_on(async { tokio::spawn(async { use_limiters() }).await.unwrap() });
    });
    within_reason(|| one_worker().block_on(async { use_limiters() }));
}

#[test]
fn a_blocking_thread_of_either_runtime_may_ask() {
    for runtime in [current_thread as fn() -> Runtime, one_worker] {
        within_reason(move || {
            runtime().block_on(async { tokio::task::spawn_blocking(use_limiters).await.unwrap() });
        });
    }
}

#[test]
fn a_local_set_may_ask() {
    within_reason(|| {
        let local = tokio::task::LocalSet::new();
        one_worker().block_on(local.run_until(async {
            tokio::task::spawn_local(async { use_limiters() })
                .await
                .unwrap();
        }));
    });
}

#[test]
fn many_threads_may_ask_at_once() {
    within_reason(|| {
        let address = serve();
        let limiter = Blocking::connect(async move {
            let store = LineStore::connect(address).await?;
            Ok(Limiter::new(store, Quota::per_hour(100)))
        })
        .unwrap();
        let hits = || {
            let admitted = |_| limiter.hit("alice").unwrap().is_allowed();
            (0..50).map(admitted).filter(|admitted| *admitted).count()
        };
        let admitted: usize = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(hits)).collect();
            let ends = threads.into_iter().map(|thread| thread.join().unwrap());
            ends.sum()
        });
        assert_eq!(admitted, 100);
    });
}

#[test]
fn a_task_may_ask_more_often_than_its_budget_of_polls_allows() {
    within_reason(|| {
        current_thread().block_on(async {
            let limiter = limiters().remove(0);
            for _ in 0..1_000 {
                assert!(limiter.peek("alice").unwrap().is_allowed());
            }
        });
    });
}

#[test]
fn every_verb_is_there() {
    let policy = Policy::new("log", Algorithm::SlidingLog, Quota::per_minute(10)).unwrap();
    let limiter = Blocking::new(Limiter::new(FarStore::new(), policy)).unwrap();
    assert_eq!(limiter.hit_n("alice", 3).unwrap().remaining(), 7);
    assert!(!limiter.peek_n("alice", 8).unwrap().is_allowed());
    let reservation = limiter.reserve("alice", 5).unwrap();
    let receipt = reservation.into_receipt().unwrap();
    assert_eq!(limiter.settle(receipt, 1).unwrap().remaining, 6);
    let acquired = limiter.acquire("alice", Acquire::within(MILLI)).unwrap();
    assert_eq!(acquired.remaining(), 5);
    assert!(limiter.reset("alice").unwrap());
    assert!(!limiter.reset("alice").unwrap());
    assert_eq!(limiter.hit("").unwrap_err().kind(), ErrorKind::InvalidInput);
    assert_eq!(
        limiter.hit_n("alice", 0).unwrap_err().kind(),
        ErrorKind::InvalidInput
    );
}

#[test]
fn acquire_blocks_until_the_units_fit() {
    let quota = "1/20ms".parse::<Quota>().unwrap();
    let limiter = Blocking::new(Limiter::new(MemoryStore::new(), quota))
        .unwrap()
        .patience(Duration::ZERO);
    let patient = Acquire::within(LONG);
    for _ in 0..3 {
        assert!(limiter.acquire("alice", patient).unwrap().is_allowed());
    }
    let denied = limiter.acquire("alice", Acquire::within(Duration::ZERO));
    assert!(!denied.unwrap().is_allowed());
}

#[test]
fn trouble_of_the_store_becomes_an_answer_by_the_failure_mode() {
    let store = FarStore::new();
    store.be(Mood::Hangs);
    let store = Timeout::within(store, MILLI).unwrap();
    let limiter = Limiter::new(store, Quota::per_minute(1)).on_failure(FailureMode::Closed);
    let limiter = Blocking::new(limiter).unwrap();
    let denied = limiter.hit("alice").unwrap();
    assert!(!denied.is_allowed());
    assert_eq!(denied.error().unwrap().kind(), ErrorKind::Timeout);
}

#[test]
fn a_store_that_only_the_blocked_thread_could_drive_ends_in_an_error_and_does_not_hang() {
    within_reason(|| {
        let address = serve();
        current_thread().block_on(async {
            let store = LineStore::connect(address).await.unwrap();
            let limiter = Blocking::new(Limiter::new(store, Quota::per_minute(1)))
                .unwrap()
                .patience(20 * MILLI);
            let error = limiter.hit("alice").unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Timeout);
            assert!(error.may_have_charged());
            assert!(error.to_string().contains("Blocking::connect"), "{error}");
            let error = limiter.peek("alice").unwrap_err();
            assert!(!error.may_have_charged());
        });
    });
}

#[test]
fn a_runtime_that_is_shut_down_meanwhile_ends_in_an_error_and_does_not_hang() {
    within_reason(|| {
        let runtime = one_worker();
        let (store, silent_peer) = runtime.block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = listener.local_addr().unwrap();
            let (connection, peer) = tokio::join!(TcpStream::connect(address), listener.accept());
            (LineStore::new(connection.unwrap()), peer.unwrap().0)
        });
        let silent_peer = silent_peer.into_std().unwrap();
        let limiter = Blocking::new(Limiter::new(store, Quota::per_minute(1)))
            .unwrap()
            .patience(LONG * 10);
        std::thread::scope(|scope| {
            let call = scope.spawn(|| {
                let decision = limiter.hit("alice").unwrap();
                decision.error().unwrap().kind()
            });
            // The line has arrived: the call waits for its answer.
            silent_peer.set_nonblocking(false).unwrap();
            assert_eq!(silent_peer.peek(&mut [0; 1]).unwrap(), 1);
            runtime.shutdown_background();
            assert_eq!(call.join().unwrap(), ErrorKind::Unavailable);
        });
    });
}

#[test]
fn it_may_be_dropped_inside_of_a_runtime() {
    for runtime in [current_thread as fn() -> Runtime, one_worker] {
        within_reason(move || {
            runtime().block_on(async {
                for limiter in limiters() {
                    drop(limiter.clone());
                    assert!(limiter.hit("alice").unwrap().is_allowed());
                    drop(limiter);
                }
            });
        });
    }
}

#[test]
fn a_limiter_beside_another_shares_its_thread() {
    let one = Blocking::new(Limiter::new(FarStore::new(), Quota::per_minute(1))).unwrap();
    let far = FarStore::new();
    far.be(Mood::Takes(MILLI));
    let other = one.beside(Limiter::new(far, Quota::per_minute(1)));
    drop(one);
    assert!(other.hit("alice").unwrap().is_allowed());
}

#[test]
fn what_connecting_ends_with_is_handed_on() {
    let refused = Blocking::connect(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        drop(listener);
        let store = LineStore::connect(address).await?;
        Ok(Limiter::new(store, Quota::per_minute(1)))
    });
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::Unavailable);
}
