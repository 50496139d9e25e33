//! A process that ends with calls under way.

use std::panic;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use tokio::runtime::{Builder, Runtime};
use tollgate_core::{Algorithm, FailureMode, Limiter, Policies, Policy, Quota, SharedStore};

use crate::backend::Backend;
use crate::postgres::Postgres;
use crate::redis::Redis;

/// The name of the threads of the process that ends.
const PROCESS: &str = "under way";

#[test]
fn redis_has_charged_whole_calls_when_a_runtime_is_dropped_under_way() {
    a_dropped_runtime_leaves_whole_charges::<Redis>();
}

#[test]
fn postgres_has_charged_whole_calls_when_a_runtime_is_dropped_under_way() {
    a_dropped_runtime_leaves_whole_charges::<Postgres>();
}

fn a_dropped_runtime_leaves_whole_charges<B: Backend>() {
    let panics = count_panics();
    let outside = runtime("outside");
    let server = outside.block_on(B::start());
    let (mut sent_before, mut admitted_before) = (0, 0);
    for _ in 0..5 {
        let (sent, admitted) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let process = runtime(PROCESS);
        let [usual, _] = process.block_on(async { B::stacks(server.port()) });
        let limiter = Arc::new(limiter(&usual.store));
        for _ in 0..64 {
            let counts = (Arc::clone(&sent), Arc::clone(&admitted));
            process.spawn(hit_on(Arc::clone(&limiter), counts));
        }
        let started = Instant::now();
        while admitted.load(Ordering::Relaxed) < 500 {
            assert!(
                started.elapsed() < Duration::from_secs(20),
                "nobody gets on"
            );
            thread::sleep(Duration::from_millis(1));
        }
        let asked = Instant::now();
        drop(process);
        assert!(asked.elapsed() < Duration::from_secs(5), "it hangs");
        sent_before += sent.load(Ordering::Relaxed);
        admitted_before += admitted.load(Ordering::Relaxed);
        let counted = outside.block_on(async { settled(&server.bare()).await });
        assert_eq!(counted[0], counted[1], "half a call was charged");
        assert!((admitted_before..=sent_before).contains(&counted[0]));
    }
    assert_eq!(panics.load(Ordering::Relaxed), 0);
}

fn runtime(name: &str) -> Runtime {
    let mut builder = Builder::new_multi_thread();
    builder.worker_threads(2).thread_name(name).enable_all();
    builder.build().unwrap()
}

/// Two policies, so that a call that was charged in part would show.
fn limiter(store: &SharedStore) -> Limiter {
    let policies = [("minute", 60), ("week", 7 * 86_400)].map(|(name, seconds)| {
        let quota = Quota::new(1_000_000_000, Duration::from_secs(seconds)).unwrap();
        Policy::new(name, Algorithm::SlidingLog, quota).unwrap()
    });
    Limiter::new(store.clone(), Policies::new(policies).unwrap()).on_failure(FailureMode::Closed)
}

async fn hit_on(limiter: Arc<Limiter>, (sent, admitted): (Arc<AtomicU64>, Arc<AtomicU64>)) {
    loop {
        sent.fetch_add(1, Ordering::Relaxed);
        if limiter.hit("a").await.unwrap().is_allowed() {
            admitted.fetch_add(1, Ordering::Relaxed);
        } else {
            // An open breaker answers at once: a task that only asks would leave nobody else a turn, no probe either.
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
}

/// The counts once the server has carried out what was on its way when the process ended.
async fn settled(store: &SharedStore) -> Vec<u64> {
    let mut counted = count(store).await;
    loop {
        tokio::time::sleep(Duration::from_millis(100)).await;
        let last = std::mem::replace(&mut counted, count(store).await);
        if counted == last {
            return counted;
        }
    }
}

/// What the server has counted under each policy.
async fn count(store: &SharedStore) -> Vec<u64> {
    let limiter = limiter(store);
    let decision = limiter.peek("a").await.unwrap();
    assert!(!decision.is_degraded(), "{decision:?}");
    let each = decision.each();
    each.map(|decision| decision.limit() - decision.remaining())
        .collect()
}

/// Counts the panics of tasks, which nobody else would see.
fn count_panics() -> Arc<AtomicU64> {
    let panics = Arc::new(AtomicU64::new(0));
    let (counter, tell) = (Arc::clone(&panics), panic::take_hook());
    panic::set_hook(Box::new(move |info| {
        if thread::current().name() == Some(PROCESS) {
            counter.fetch_add(1, Ordering::Relaxed);
        }
        tell(info);
    }));
    panics
}
