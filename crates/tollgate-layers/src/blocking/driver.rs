//! A thread that drives what a call waits for, while the caller's thread polls the call.

use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, mpsc};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;
use tokio::task::unconstrained;
use tollgate_core::{Error, ErrorKind, Result};

/// A runtime on a thread of its own, until this is dropped.
#[derive(Debug)]
pub(super) struct Driver {
    runtime: Handle,
    /// The thread waits for this to be dropped. Nobody waits for the thread: it ends by itself, with its runtime, which
    /// must not be dropped on a thread that runs another one.
    _stop: oneshot::Sender<()>,
}

impl Driver {
    pub(super) fn start() -> Result<Self> {
        let (stop, stopped) = oneshot::channel();
        let (started, start) = mpsc::sync_channel(1);
        thread::Builder::new()
            .name("tollgate-blocking".to_owned())
            .spawn(move || {
                let runtime = match Builder::new_current_thread().enable_all().build() {
                    Ok(runtime) => runtime,
                    Err(error) => return drop(started.send(Err(error))),
                };
                if started.send(Ok(runtime.handle().clone())).is_ok() {
                    // An error is the signal: the other end was dropped.
                    let _ = runtime.block_on(stopped);
                }
            })
            .map_err(not_started)?;
        let runtime = start.recv().map_err(not_started)?.map_err(not_started)?;
        Ok(Self {
            runtime,
            _stop: stop,
        })
    }

    /// Polls `future` on this thread until it is done.
    pub(super) fn wait<F: Future>(&self, future: F) -> F::Output {
        let mut future = pin!(future);
        loop {
            if let Some(output) = self.wait_at_most(Duration::MAX, future.as_mut()) {
                return output;
            }
        }
    }

    /// Polls `future` on this thread until it is done, and drops it if that takes longer than `patience`.
    pub(super) fn wait_at_most<F: Future>(
        &self,
        patience: Duration,
        future: F,
    ) -> Option<F::Output> {
        // Whatever the call opens or spawns belongs to this driver, whichever runtime the thread runs otherwise.
        let _context = self.runtime.enter();
        // A task has a budget, after which tokio's resources make it yield. This one cannot yield to anybody: it would be
        // told to for ever.
        let mut future = pin!(unconstrained(future));
        let waker = Waker::from(Arc::new(Unpark(thread::current())));
        let mut context = Context::from_waker(&waker);
        let began = Instant::now();
        loop {
            if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
                return Some(output);
            }
            let left = patience.checked_sub(began.elapsed())?;
            // It may return early, also for a wake-up that was meant for an earlier call.
            thread::park_timeout(left);
        }
    }
}

/// Wakes the thread that polls.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.unpark();
    }
}

fn not_started(cause: impl std::error::Error + Send + Sync + 'static) -> Error {
    Error::new(
        ErrorKind::Other,
        "the thread that drives blocking calls cannot be started",
    )
    .with_source(cause)
}
