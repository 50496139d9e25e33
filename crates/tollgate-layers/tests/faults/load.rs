//! Steady load from callers of every failure mode at once, while something happens to their store.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tokio::task::JoinHandle;
use tollgate_core::{Algorithm, FailureMode, Limiter, Policy, Quota, SharedStore};

use crate::stack::Stack;
use crate::tally::Tally;

/// Per subject and day: soon reached, and never given back while a run lasts.
pub(crate) const LIMIT: u64 = 20;
/// Callers of each failure mode.
const CALLERS: usize = 8;
/// So many subjects are hit now and then, from the beginning to the end.
const LASTING: u64 = 40;
/// All other hits go to one subject for so long, and then to the next.
const TURN: Duration = Duration::from_millis(50);
const PAUSE: Duration = Duration::from_millis(2);
pub(crate) const MODES: [FailureMode; 3] = [
    FailureMode::Open,
    FailureMode::Closed,
    FailureMode::Fallback,
];

/// A limiter whose counters no other failure mode shares.
pub(crate) fn limiter(store: &SharedStore, prefix: &str, mode: FailureMode) -> Limiter {
    let limit = u32::try_from(LIMIT).unwrap();
    let policy = Policy::new("fault", Algorithm::FixedWindow, Quota::per_day(limit)).unwrap();
    let scope = format!("{mode:?}");
    Limiter::new(store.clone(), policy)
        .prefix(prefix)
        .scope(&scope)
        .on_failure(mode)
}

/// Callers at work.
#[derive(Debug)]
pub(crate) struct Load {
    stop: Arc<AtomicBool>,
    callers: Vec<(FailureMode, JoinHandle<Tally>)>,
}

/// What all callers of each failure mode saw.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub(crate) open: Tally,
    pub(crate) closed: Tally,
    pub(crate) fallback: Tally,
}

impl Load {
    pub(crate) fn start(stack: &Stack) -> Self {
        let (started, stop) = (Instant::now(), Arc::new(AtomicBool::new(false)));
        let callers = MODES.into_iter().flat_map(|mode| {
            let limiter = Arc::new(limiter(&stack.store, stack.name, mode));
            let stop = Arc::clone(&stop);
            (0..CALLERS).map(move |_| {
                let caller = call(Arc::clone(&limiter), Arc::clone(&stop), started);
                (mode, tokio::spawn(caller))
            })
        });
        let callers = callers.collect();
        Self { stop, callers }
    }

    /// Lets every caller end its call, and returns what they saw.
    pub(crate) async fn stop(self) -> Seen {
        self.stop.store(true, Ordering::Relaxed);
        let mut seen = Seen::default();
        for (mode, caller) in self.callers {
            let tally = caller.await.expect("no caller panicked");
            match mode {
                FailureMode::Open => seen.open.add(tally),
                FailureMode::Closed => seen.closed.add(tally),
                FailureMode::Fallback => seen.fallback.add(tally),
            }
        }
        seen
    }
}

async fn call(limiter: Arc<Limiter>, stop: Arc<AtomicBool>, started: Instant) -> Tally {
    let mut tally = Tally::default();
    while !stop.load(Ordering::Relaxed) {
        let subject = if tally.sent % 4 == 0 {
            format!("lasting {}", tally.sent / 4 % LASTING)
        } else {
            let turn = started.elapsed().as_millis() / TURN.as_millis();
            format!("passing {turn}")
        };
        let asked = Instant::now();
        let decision = limiter
            .hit(&subject)
            .await
            .expect("trouble is never an error of the call");
        tally.count(&subject, &decision, asked.elapsed());
        tokio::time::sleep(PAUSE).await;
    }
    tally
}
