//! A bound on how long a store may take.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;

use tokio::runtime::Handle;
use tollgate_core::{
    Batch, Capabilities, Check, Error, ErrorKind, InProcessStore, Key, Op, Result, Store,
    Timestamp, Verdict, Verdicts,
};

/// A store that answers within a bound, or reports [`ErrorKind::Timeout`].
///
/// A store that hangs is a store that is down: without a bound, every caller waits for it as long as the driver likes,
/// and a peer that keeps the connection open and says nothing can make that for ever.
///
/// - The bound covers [`apply`](Store::apply) and [`reset`](Store::reset), and begins when the call has to wait for the
///   first time. A call that is answered at once costs no timer. [`apply_now`](Store::apply_now) and the calls of an
///   [`InProcessStore`] never wait, so they are not timed.
/// - After the bound the call of the store inside is dropped. A hit or a settlement may have been charged by then, or may
///   be charged later by what is already on its way; the error says so. A batch of peeks and a reset charge nothing.
/// - The time is tokio's, whose timer has a resolution of one millisecond. A call is never cut short; it may get a
///   millisecond more, or what a busy thread adds.
///
/// # Panics
/// A call that has to wait panics in a tokio runtime that was built without a timer (`Builder::enable_time`). Without any
/// runtime it is an error, [`ErrorKind::Unsupported`].
///
/// ```
/// use std::time::Duration;
/// use tollgate_layers::Timeout;
/// use tollgate_memory::{Limiter, MemoryStore, Quota};
///
/// let store = Timeout::within(MemoryStore::new(), Duration::from_millis(50))?;
/// let limiter = Limiter::new(store, Quota::per_minute(2));
/// # Ok::<(), tollgate_memory::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Timeout<S> {
    store: S,
    bound: Duration,
    name: &'static str,
}

impl<S: Store> Timeout<S> {
    /// The bound unless set: 100 ms.
    ///
    /// A store in the same network answers in one or two milliseconds. The bound leaves it fifty times that, for a
    /// pause or a lost packet, and still keeps the wait below what a person at the other end notices.
    pub const DEFAULT: Duration = Duration::from_millis(100);
    /// The shortest bound: the resolution of the timer.
    pub const MIN: Duration = Duration::from_millis(1);
    /// The longest bound. Nobody waits an hour to be told that they may call; a longer bound is a mistaken unit.
    pub const MAX: Duration = Duration::from_secs(60 * 60);

    /// Bounds the calls of `store` by [`DEFAULT`](Self::DEFAULT).
    #[must_use]
    pub const fn new(store: S) -> Self {
        Self {
            store,
            bound: Self::DEFAULT,
            name: crate::DEFAULT_NAME,
        }
    }

    /// Bounds the calls of `store` by `bound`.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`] outside of [`MIN`](Self::MIN) to [`MAX`](Self::MAX).
    pub fn within(store: S, bound: Duration) -> Result<Self> {
        let (least, most) = (Self::MIN, Self::MAX);
        if bound < least || bound > most {
            return Err(Error::new(
                ErrorKind::InvalidInput,
                format!("a timeout lies between {least:?} and {most:?}, not at {bound:?}"),
            ));
        }
        Ok(Self {
            bound,
            ..Self::new(store)
        })
    }

    /// Names the store in errors, `"store"` unless set.
    #[must_use]
    pub fn name(self, name: &'static str) -> Self {
        Self { name, ..self }
    }

    /// How long a call may take.
    #[must_use]
    pub const fn bound(&self) -> Duration {
        self.bound
    }

    /// The store inside.
    pub const fn inner(&self) -> &S {
        &self.store
    }

    /// Waits for `answer` as long as the bound allows; `about` tells what is then known of the call.
    async fn bounded<T>(
        &self,
        answer: impl Future<Output = Result<T>> + Send,
        effect: Effect,
    ) -> Result<T> {
        let mut answer = pin!(answer);
        if let Poll::Ready(answer) = at_once(answer.as_mut()).await {
            return answer;
        }
        // The call is on its way by now: where nothing can time it, it is given up rather than left without a bound.
        if Handle::try_current().is_err() {
            return Err(self.untimed(effect));
        }
        match tokio::time::timeout(self.bound, answer).await {
            Ok(answer) => answer,
            Err(_) => Err(self.late(effect)),
        }
    }

    #[cold]
    fn late(&self, effect: Effect) -> Error {
        let message = format!("no answer within {:?}; {}", self.bound, effect.in_words());
        effect.mark(Error::new(ErrorKind::Timeout, message).with_store(self.name))
    }

    #[cold]
    fn untimed(&self, effect: Effect) -> Error {
        let message = format!(
            "the call has to wait and there is no tokio runtime to time it by; ask from within one; {}",
            effect.in_words()
        );
        effect.mark(Error::new(ErrorKind::Unsupported, message).with_store(self.name))
    }
}

/// Polls once.
async fn at_once<F: Future>(mut future: Pin<&mut F>) -> Poll<F::Output> {
    poll_fn(|context| Poll::Ready(future.as_mut().poll(context))).await
}

/// What a call that was given up may have done.
#[derive(Clone, Copy, Debug)]
enum Effect {
    Charge,
    Nothing,
    Reset,
}

impl Effect {
    fn of(batch: &Batch<'_>) -> Self {
        let peeks = |check: &Check<'_>| matches!(check.op, Op::Peek(_));
        if batch.checks().iter().all(peeks) {
            Self::Nothing
        } else {
            Self::Charge
        }
    }

    const fn in_words(self) -> &'static str {
        match self {
            Self::Charge => "it may have been charged",
            Self::Nothing => "nothing was charged",
            Self::Reset => "nothing was charged, but the keys may have been forgotten",
        }
    }

    fn mark(self, error: Error) -> Error {
        match self {
            Self::Charge => error.with_charge_unknown(),
            Self::Nothing | Self::Reset => error,
        }
    }
}

impl<S: Store> Store for Timeout<S> {
    async fn apply<'a>(&'a self, batch: Batch<'a>) -> Result<Verdicts> {
        let effect = Effect::of(&batch);
        self.bounded(self.store.apply(batch), effect).await
    }

    async fn reset<'a>(&'a self, keys: &'a [Key<'a>]) -> Result<u64> {
        self.bounded(self.store.reset(keys), Effect::Reset).await
    }

    fn capabilities(&self) -> Capabilities {
        self.store.capabilities()
    }

    fn apply_now(&self, batch: &Batch<'_>) -> Option<Result<Verdicts>> {
        self.store.apply_now(batch)
    }
}

impl<S: InProcessStore> InProcessStore for Timeout<S> {
    fn judge(&self, batch: &Batch<'_>) -> Result<Verdicts> {
        self.store.judge(batch)
    }

    #[inline]
    fn judge_at_hand(&self, check: &Check<'_>) -> Option<(Timestamp, Verdict)> {
        self.store.judge_at_hand(check)
    }
}
