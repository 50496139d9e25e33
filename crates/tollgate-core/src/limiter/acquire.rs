//! Waiting for admission.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::algorithm::Op;
use crate::cost::Cost;
use crate::decision::Decision;
use crate::error::Result;
use crate::limiter::Limiter;
use crate::store::Store;

/// How long [`Limiter::acquire`] may wait, and for what.
///
/// ```
/// use std::time::Duration;
/// use tollgate_core::{Acquire, Cost};
///
/// let patient = Acquire::within(Duration::from_secs(5)).cost(Cost::new(10)?).jitter(Duration::from_millis(50));
/// # Ok::<(), tollgate_core::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Acquire {
    max_wait: Duration,
    jitter: Duration,
    cost: Cost,
}

impl Acquire {
    /// Waits `max_wait` at most, for one unit, without jitter.
    #[must_use]
    pub const fn within(max_wait: Duration) -> Self {
        Self {
            max_wait,
            jitter: Duration::ZERO,
            cost: Cost::ONE,
        }
    }

    /// Waits for `cost` units.
    #[must_use]
    pub const fn cost(self, cost: Cost) -> Self {
        Self { cost, ..self }
    }

    /// Adds up to `most` to each wait, evenly spread, so that many waiters do not come back at one instant.
    ///
    /// The maximum wait holds all the same.
    #[must_use]
    pub const fn jitter(self, most: Duration) -> Self {
        Self {
            jitter: most,
            ..self
        }
    }

    /// The longest wait.
    #[must_use]
    pub const fn max_wait(&self) -> Duration {
        self.max_wait
    }

    fn jittered(&self, wait: Duration) -> Duration {
        let most = u64::try_from(self.jitter.as_micros()).unwrap_or(u64::MAX);
        wait.saturating_add(Duration::from_micros(fastrand::u64(..=most)))
    }
}

impl<S: Store> Limiter<S> {
    /// Takes units for `subject` as soon as they fit, waiting on the tokio timer.
    ///
    /// Waits exactly until the time the store names and asks again, as often as others were quicker. It gives up at
    /// once, with the denial, when the units can never fit or not within the maximum wait. Nothing is charged while it
    /// waits: dropping the future then costs nothing. There is no queue: waiters are admitted in no particular order.
    ///
    /// A leaky bucket's [`delay`](Decision::delay) is not waited for; it is in the decision.
    ///
    /// # Errors
    /// As [`hit_n`](Self::hit_n).
    ///
    /// # Panics
    /// Outside a tokio runtime with a timer, if it has to wait.
    pub async fn acquire(
        &self,
        subject: impl AsRef<[u8]> + Send + Sync,
        acquire: Acquire,
    ) -> Result<Decision<'_>> {
        let subject = subject.as_ref();
        let started = Instant::now();
        loop {
            let decision = self.ask(subject, Op::Hit(acquire.cost)).await?;
            if decision.is_allowed() {
                return Ok(decision);
            }
            let left = acquire.max_wait.saturating_sub(started.elapsed());
            match decision.retry_after() {
                Some(wait) if wait <= left => sleep(acquire.jittered(wait).min(left)).await,
                _ => return Ok(decision),
            }
        }
    }
}
