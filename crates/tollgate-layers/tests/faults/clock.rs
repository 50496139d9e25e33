//! Wall clocks that jump: the server's, and the application's.

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use tollgate_core::{Algorithm, FailureMode, Limiter, Policy, Quota, SharedStore, Source, Store};
use tollgate_faults::{Fault, Proxy};
use tollgate_redis::RedisStore;
use tollgate_services::{PostgresServer, RedisProgram, RedisServer, SteppedClock};

use crate::backend::Backend;
use crate::redis::Redis;
use crate::stack::{BOUND, usual};
use crate::{postgres, redis};

const HOUR: i64 = 3600;
/// Twice forth, and twice back.
const JUMPS: [i64; 4] = [-HOUR, HOUR, 24 * HOUR, 0];
const BURST: u32 = 10;

fn limiter(store: SharedStore) -> Limiter {
    let quota = Quota::per_second(BURST);
    let policy = Policy::new("clock", Algorithm::TokenBucket, quota).unwrap();
    Limiter::new(store, policy).on_failure(FailureMode::Closed)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_redis_whose_clock_jumps_locks_nobody_out_and_gives_away_a_burst_at_most() {
    let clock = SteppedClock::new().unwrap();
    let server = RedisServer::start_under(&clock, RedisProgram::Redis8).unwrap();
    let store = RedisStore::new(redis::manager(&server.url()));
    jumps_cost_a_burst_each(&clock, store).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_postgres_whose_clock_jumps_locks_nobody_out_and_gives_away_a_burst_at_most() {
    let clock = SteppedClock::new().unwrap();
    let server = PostgresServer::start_under(&clock).unwrap();
    let store = postgres::on(postgres::pool(server.port()));
    store.ensure_schema().await.unwrap();
    jumps_cost_a_burst_each(&clock, store).await;
}

async fn jumps_cost_a_burst_each(clock: &SteppedClock, store: impl Store) {
    let limiter = limiter(usual(store).store);
    let started = Instant::now();
    let mut admitted = spend(&limiter).await;
    for seconds in JUMPS {
        clock.step_to(seconds).unwrap();
        // Nobody waits longer than a unit takes to come back, whichever way the clock went.
        let waits = Instant::now();
        let more = loop {
            let more = spend(&limiter).await;
            if more > 0 {
                break more;
            }
            assert!(waits.elapsed() < Duration::from_secs(5), "locked out");
            tokio::time::sleep(Duration::from_millis(10)).await;
        };
        admitted += more;
    }
    let elapsed = u64::try_from(started.elapsed().as_micros()).unwrap();
    let refilled = elapsed * u64::from(BURST) / 1_000_000;
    let bursts = 1 + u64::try_from(JUMPS.len()).unwrap();
    assert!(
        admitted <= bursts * u64::from(BURST) + refilled,
        "{admitted}"
    );
}

/// Hits until denied.
async fn spend(limiter: &Limiter) -> u64 {
    let mut admitted = 0;
    while limiter.hit("a").await.unwrap().is_allowed() {
        admitted += 1;
    }
    admitted
}

/// What tells the test below that its clock is stepped: the port of the server.
const SERVER: &str = "TOLLGATE_TEST_STEPPED_CLOCK_SERVER";
const OWN_NAME: &str = "clock::wrappers_do_not_go_by_the_wall_clock_of_the_application";

/// It starts itself once more as a process whose wall clock jumps by an hour every few milliseconds.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wrappers_do_not_go_by_the_wall_clock_of_the_application() {
    if let Ok(port) = std::env::var(SERVER) {
        return under_a_jumping_clock(port.parse().unwrap()).await;
    }
    let server = Redis::start().await;
    let clock = SteppedClock::new().unwrap();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", OWN_NAME, "--nocapture"])
        .envs(clock.environment())
        .env(SERVER, server.port().to_string())
        .spawn()
        .unwrap();
    let mut jumps = [HOUR, -HOUR].into_iter().cycle();
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        clock.step_to(jumps.next().unwrap()).unwrap();
        thread::sleep(Duration::from_millis(7));
    };
    assert!(status.success());
}

async fn under_a_jumping_clock(port: u16) {
    let jumps = Jumps::watch();
    let proxy = Proxy::start((std::net::Ipv4Addr::LOCALHOST, port)).unwrap();
    let stack = usual(Redis::store(proxy.port()));
    // A denial is answered from memory, and for no longer than it holds.
    let once = Quota::new(1, Duration::from_secs(2)).unwrap();
    let slow = Limiter::new(stack.store.clone(), once);
    assert!(slow.hit("a").await.unwrap().is_allowed());
    assert_eq!(slow.hit("a").await.unwrap().source(), Source::Store);
    assert_eq!(slow.hit("a").await.unwrap().source(), Source::DenyCache);
    let denied = Instant::now();
    while !slow.hit("a").await.unwrap().is_allowed() {
        assert!(
            denied.elapsed() < Duration::from_secs(10),
            "denied for ever"
        );
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let limiter = limiter(stack.store);
    // A silent store is given up in time, then left alone, and taken up again.
    proxy.set(Fault::Silence).unwrap();
    let (mut refused, mut longest) = (0, Duration::ZERO);
    while refused < 1_000 {
        let asked = Instant::now();
        let decision = limiter.hit("b").await.unwrap();
        assert!(decision.is_degraded());
        let took = asked.elapsed();
        longest = longest.max(took);
        refused += u32::from(took < BOUND / 2);
    }
    assert!(
        longest >= BOUND && longest < BOUND + Duration::from_secs(1),
        "{longest:?}"
    );
    proxy.heal().unwrap();
    let healed = Instant::now();
    while limiter.hit("c").await.unwrap().is_degraded() {
        assert!(healed.elapsed() < Duration::from_secs(30), "open for ever");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert!(jumps.count() > 10, "the clock did not jump");
}

/// Counts how often the wall clock jumps.
#[derive(Debug)]
struct Jumps {
    stop: Arc<AtomicBool>,
    watcher: thread::JoinHandle<u32>,
}

impl Jumps {
    fn watch() -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let watcher = thread::spawn(move || {
            let (mut last, mut jumps) = (SystemTime::now(), 0);
            while !stopped.load(Ordering::Relaxed) {
                let now = SystemTime::now();
                let forth = now.duration_since(last).unwrap_or_default();
                let back = last.duration_since(now).unwrap_or_default();
                jumps += u32::from(forth.max(back) > Duration::from_secs(1800));
                last = now;
                thread::sleep(Duration::from_millis(1));
            }
            jumps
        });
        Self { stop, watcher }
    }

    fn count(self) -> u32 {
        self.stop.store(true, Ordering::Relaxed);
        self.watcher.join().unwrap()
    }
}
