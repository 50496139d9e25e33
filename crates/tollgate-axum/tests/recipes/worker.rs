//! A worker without HTTP, in tokio's virtual time.

use std::future::pending;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};
use tollgate_memory::{Clock, MemoryStore, SharedStore, Timestamp};

use self::example::{Summary, limiter, run};

#[path = "../../examples/worker.rs"]
#[expect(dead_code, reason = "its `main` is for users")]
mod example;

/// The store's clock follows the one that the worker sleeps by.
#[derive(Debug)]
struct TokioClock(Instant);

impl Clock for TokioClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(1_000_000_000_000_000).unwrap() + self.0.elapsed()
    }
}

fn store() -> SharedStore {
    let store = MemoryStore::builder().clock(TokioClock(Instant::now()));
    SharedStore::new(store.build().unwrap())
}

/// A queue of jobs that is closed after the last.
fn jobs(jobs: impl IntoIterator<Item = u32>) -> mpsc::Receiver<u32> {
    let (sender, receiver) = mpsc::channel(100);
    for job in jobs {
        sender.try_send(job).unwrap();
    }
    receiver
}

#[tokio::test(start_paused = true)]
async fn jobs_are_done_in_order_at_an_even_pace() {
    let limiter = limiter(&store()).unwrap();
    let started = Instant::now();
    let summary = run(&limiter, jobs(1..=5), pending()).await.unwrap();
    assert_eq!(summary.done, [1, 2, 3, 4, 5]);
    // The first at once, then one each half second. Tokio's timer counts milliseconds, and each wait is rounded up.
    let took = started.elapsed();
    let bounds = Duration::from_millis(2_000)..=Duration::from_millis(2_010);
    assert!(bounds.contains(&took), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn workers_on_one_store_share_the_pace() {
    let store = store();
    let limiters = [limiter(&store).unwrap(), limiter(&store).unwrap()];
    let started = Instant::now();
    let (first, second) = tokio::join!(
        run(&limiters[0], jobs([1, 2]), pending()),
        run(&limiters[1], jobs([3, 4]), pending()),
    );
    assert_eq!(first.unwrap().done, [1, 2]);
    assert_eq!(second.unwrap().done, [3, 4]);
    assert!(started.elapsed() >= Duration::from_millis(1_500));
}

#[tokio::test(start_paused = true)]
async fn a_job_that_would_wait_too_long_is_given_up_at_once() {
    let store = store();
    let limiter = limiter(&store).unwrap();
    // Somebody has taken the turns of the next six seconds.
    let taken = limiter.reserve("everybody", 1).await.unwrap();
    let receipt = taken.into_receipt().unwrap();
    limiter.settle(receipt, 13).await.unwrap();

    let started = Instant::now();
    let summary = run(&limiter, jobs([1]), pending()).await.unwrap();
    assert_eq!(
        (summary.given_up, started.elapsed()),
        (vec![1], Duration::ZERO)
    );
}

#[tokio::test(start_paused = true)]
async fn shutting_down_ends_a_wait_and_charges_nothing() {
    let limiter = limiter(&store()).unwrap();
    let shutdown = sleep(Duration::from_millis(600));
    let summary = run(&limiter, jobs(1..=4), shutdown).await.unwrap();
    let expected = Summary {
        done: vec![1, 2],
        given_up: vec![],
        not_begun: vec![3, 4],
    };
    assert_eq!(summary, expected);

    // The third's turn is still there when it comes.
    sleep(Duration::from_millis(410)).await;
    assert!(limiter.hit("everybody").await.unwrap().is_allowed());
}
