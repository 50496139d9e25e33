//! A store that is not asked while it is down.

mod gate;
mod options;
mod signals;
mod word;

use tokio::time::Instant;
use tollgate_core::{
    Batch, Capabilities, Check, Error, ErrorKind, InProcessStore, Key, Result, Store, Timestamp,
    Verdict, Verdicts,
};

pub use self::options::BreakerOptions;
pub use self::word::BreakerState;

use self::gate::{Entry, Evidence, Gate, Pass};
use self::signals::Signals;

/// A store that is left alone while it is down: calls then fail at once, charging nothing, until a probe finds it well.
///
/// - **Closed**, the store is asked. As many failures in a row as [`BreakerOptions::failures`] says open the breaker.
/// - **Open**, calls fail at once with [`ErrorKind::Unavailable`]. The message says since when, when the next probe is
///   due, and what the last failure was.
/// - **Half-open**, once that is due, the next call is let through as a probe, and all others still fail. If the store
///   answers it, the breaker closes; otherwise it waits twice as long for the next probe.
///
/// A failure counts if it is transient ([`ErrorKind::is_transient`]), timeouts included. [`ErrorKind::Conflict`] does not:
/// a store that reports one is well, and those who write one key often must not take the store away from everybody.
/// Permanent failures are passed on and never counted. [`ErrorKind::Refused`] and [`ErrorKind::Corrupt`] are answers
/// of a store that is up; there is an error event for each, once a minute at most while it lasts.
///
/// One answered probe closes the breaker. It was an ordinary call with an ordinary answer, and should the store fail
/// again, that costs no more than at the beginning.
///
/// A call that is dropped says nothing about the store; a dropped probe makes way for the next. A probe that is neither
/// done nor dropped after the longest backoff is given up on. Calls that began before a change of state do not count
/// after it. Put a [`Timeout`](crate::Timeout) inside: the breaker itself waits for the store as long as it takes.
///
/// Changes are told once each: by events (`warn` when it opens, `info` when it closes, `debug` between), by the gauge
/// `tollgate_breaker_state` (0 closed, 1 half-open, 2 open) and by the counter `tollgate_breaker_opened_total`, which
/// counts outages, both with the label `store`.
///
/// Closed, it adds an atomic load before a call and one after it.
///
/// ```
/// use tollgate_layers::{Breaker, BreakerOptions, BreakerState, Timeout};
/// use tollgate_memory::MemoryStore;
///
/// let store = Timeout::new(MemoryStore::new());
/// let store = Breaker::with_options(store, BreakerOptions::new().failures(3).name("memory"))?;
/// assert_eq!(store.state(), BreakerState::Closed);
/// # Ok::<(), tollgate_memory::Error>(())
/// ```
#[derive(Debug)]
pub struct Breaker<S> {
    store: S,
    gate: Gate,
    signals: Signals,
    origin: Instant,
}

impl<S: Store> Breaker<S> {
    /// A breaker in front of `store`, with the options of [`BreakerOptions::new`].
    #[must_use]
    pub fn new(store: S) -> Self {
        Self::checked(store, BreakerOptions::new())
    }

    /// A breaker in front of `store`.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`] for options that make no sense: no failures at all, a backoff outside of a
    /// millisecond to [`BreakerOptions::MAX_BACKOFF`], a first one longer than the longest.
    pub fn with_options(store: S, options: BreakerOptions) -> Result<Self> {
        options.check()?;
        Ok(Self::checked(store, options))
    }

    fn checked(store: S, options: BreakerOptions) -> Self {
        Self {
            store,
            gate: Gate::new(options),
            signals: Signals::new(options.store_name()),
            origin: Instant::now(),
        }
    }

    /// What the breaker does with calls just now.
    ///
    /// [`BreakerState::Open`] stays until a call comes to be the probe.
    #[must_use]
    pub fn state(&self) -> BreakerState {
        self.gate.state()
    }

    /// The store inside.
    pub const fn inner(&self) -> &S {
        &self.store
    }

    fn now(&self) -> u64 {
        u64::try_from(self.origin.elapsed().as_micros()).unwrap_or(u64::MAX)
    }

    #[inline]
    fn enter(&self) -> Result<Ticket<'_, S>> {
        let pass = match self.gate.pass_if_closed() {
            Some(pass) => pass,
            None => self.enter_unless_open()?,
        };
        Ok(self.ticket(pass))
    }

    const fn ticket(&self, pass: Pass) -> Ticket<'_, S> {
        Ticket {
            breaker: self,
            pass: Some(pass),
        }
    }

    #[cold]
    fn enter_unless_open(&self) -> Result<Pass> {
        let (entry, change) = self.gate.enter(self.now());
        if let Some(change) = change {
            self.signals.changed(change, &self.gate, None);
        }
        match entry {
            Entry::Through(pass) => Ok(pass),
            Entry::Refused => Err(self.refusal()),
        }
    }

    #[cold]
    fn refusal(&self) -> Error {
        Error::new(ErrorKind::Unavailable, self.gate.refusal()).with_store(self.signals.name())
    }

    #[cold]
    fn evidence<'e>(&self, error: &'e Error) -> Evidence<'e> {
        match error.kind() {
            ErrorKind::Conflict => Evidence::Answers,
            ErrorKind::Refused | ErrorKind::Corrupt => {
                self.signals.permanent(error, self.now());
                Evidence::Answers
            }
            kind if kind.is_transient() => Evidence::Down(error),
            kind if kind.is_callers_fault() => Evidence::Nothing,
            _ => Evidence::Fails(error),
        }
    }
}

/// The right to one call of the store. Dropped without an answer, it says that nothing is known.
#[derive(Debug)]
struct Ticket<'a, S: Store> {
    breaker: &'a Breaker<S>,
    pass: Option<Pass>,
}

impl<S: Store> Ticket<'_, S> {
    /// Draws the conclusion from `answer` and hands it on.
    #[inline]
    fn settle<T>(mut self, answer: Result<T>) -> Result<T> {
        let evidence = match &answer {
            Ok(_) => Evidence::Answers,
            Err(error) => self.breaker.evidence(error),
        };
        self.conclude(&evidence);
        answer
    }

    #[inline]
    fn conclude(&mut self, evidence: &Evidence<'_>) {
        let Some(pass) = self.pass.take() else { return };
        let Breaker { gate, signals, .. } = self.breaker;
        if let Some(change) = gate.conclude(pass, evidence, || self.breaker.now()) {
            signals.changed(change, gate, evidence.error());
        }
    }
}

impl<S: Store> Drop for Ticket<'_, S> {
    #[inline]
    fn drop(&mut self) {
        self.conclude(&Evidence::Nothing);
    }
}

impl<S: Store> Store for Breaker<S> {
    async fn apply<'a>(&'a self, batch: Batch<'a>) -> Result<Verdicts> {
        let ticket = self.enter()?;
        ticket.settle(self.store.apply(batch).await)
    }

    async fn reset<'a>(&'a self, keys: &'a [Key<'a>]) -> Result<u64> {
        let ticket = self.enter()?;
        ticket.settle(self.store.reset(keys).await)
    }

    fn capabilities(&self) -> Capabilities {
        self.store.capabilities()
    }

    /// Refuses in process whatever the store inside is; probes are left to [`apply`](Self::apply).
    fn apply_now(&self, batch: &Batch<'_>) -> Option<Result<Verdicts>> {
        if let Some(pass) = self.gate.pass_if_closed() {
            let ticket = self.ticket(pass);
            let answer = self.store.apply_now(batch)?;
            return Some(ticket.settle(answer));
        }
        if self.gate.is_probe_due(self.now()) {
            return None;
        }
        Some(Err(self.refusal()))
    }
}

impl<S: InProcessStore> InProcessStore for Breaker<S> {
    fn judge(&self, batch: &Batch<'_>) -> Result<Verdicts> {
        let ticket = self.enter()?;
        ticket.settle(self.store.judge(batch))
    }

    #[inline]
    fn judge_at_hand(&self, check: &Check<'_>) -> Option<(Timestamp, Verdict)> {
        let pass = self.gate.pass_if_closed()?;
        let answer = self.store.judge_at_hand(check)?;
        // Only a failure or a probe makes a change.
        let _unchanged = self.gate.conclude(pass, &Evidence::Answers, || self.now());
        Some(answer)
    }
}
