//! The verbs of a limiter for code that cannot wait for a future.

mod driver;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tollgate_core::{
    Acquire, Decision, Error, ErrorKind, Limiter, Receipt, Report, Reservation, Result,
    SharedStore, Store,
};

use self::driver::Driver;

/// A [`Limiter`] for synchronous code: the same verbs, each of which blocks the thread until it is answered.
///
/// It works on any thread: a plain one, one of `spawn_blocking`, and also one that runs tasks of a tokio runtime, whatever
/// its flavour. The thread polls the call itself. A thread of its own, shared by all clones, drives the timers, the
/// connections and the tasks that the store opens meanwhile.
///
/// **Connections belong to the runtime they were opened on.** Open them inside of [`connect`](Self::connect): then that
/// thread drives them, and no call waits for a runtime of yours. A store that was made on a runtime of yours needs that
/// runtime to go on. Should a call come from the very thread that would have to drive it, the wait ends with
/// [`ErrorKind::Timeout`] after the [`patience`](Self::patience). Should that runtime be shut down, the store reports
/// that as its own trouble.
///
/// **What blocking an async worker costs:** every other task of that worker waits as long, and a current-thread runtime
/// stands still. For a call in a long while that is nothing; on a busy service use the [`Limiter`], or `spawn_blocking`.
///
/// Store trouble becomes an answer by the [`FailureMode`](tollgate_core::FailureMode), as with the [`Limiter`]. Dropping the
/// last clone, wherever that happens, ends the thread and does not wait for it.
///
/// ```
/// use tollgate_layers::Blocking;
/// use tollgate_memory::{Limiter, MemoryStore, Quota};
///
/// let limiter = Blocking::new(Limiter::new(MemoryStore::new(), Quota::per_minute(1)))?;
/// assert!(limiter.hit("user:42")?.is_allowed());
/// assert!(!limiter.hit("user:42")?.is_allowed());
/// # Ok::<(), tollgate_memory::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Blocking<S = SharedStore> {
    limiter: Limiter<S>,
    driver: Arc<Driver>,
    patience: Duration,
}

impl<S: Store> Blocking<S> {
    /// How long a call waits unless set: 5 seconds, far beyond any sensible [`Timeout`](crate::Timeout).
    pub const PATIENCE: Duration = Duration::from_secs(5);

    /// Starts a thread and asks `limiter` with its help.
    ///
    /// # Errors
    /// [`ErrorKind::Other`] if the thread or its runtime cannot be started.
    pub fn new(limiter: Limiter<S>) -> Result<Self> {
        Ok(Self::over(limiter, Arc::new(Driver::start()?)))
    }

    /// Starts a thread and makes the limiter with its help, so that the store's connections are driven by it.
    ///
    /// Blocks until `connecting` is done, without a bound of its own.
    ///
    /// # Errors
    /// As [`new`](Self::new), and whatever `connecting` ends with.
    ///
    /// ```
    /// use tollgate_layers::{Blocking, Timeout};
    /// use tollgate_memory::{Limiter, MemoryStore, Quota};
    ///
    /// let limiter = Blocking::connect(async {
    ///     let store = MemoryStore::new(); // or one that is connected to a server, with `.await`
    ///     Ok(Limiter::new(Timeout::new(store), Quota::per_minute(1)))
    /// })?;
    /// assert!(limiter.hit("user:42")?.is_allowed());
    /// # Ok::<(), tollgate_memory::Error>(())
    /// ```
    pub fn connect(connecting: impl Future<Output = Result<Limiter<S>>>) -> Result<Self> {
        let driver = Driver::start()?;
        let limiter = driver.wait(connecting)?;
        Ok(Self::over(limiter, Arc::new(driver)))
    }

    /// Asks another limiter with the help of the same thread.
    pub fn beside<T: Store>(&self, limiter: Limiter<T>) -> Blocking<T> {
        Blocking {
            limiter,
            driver: Arc::clone(&self.driver),
            patience: self.patience,
        }
    }

    const fn over(limiter: Limiter<S>, driver: Arc<Driver>) -> Self {
        Self {
            limiter,
            driver,
            patience: Self::PATIENCE,
        }
    }

    /// Waits no longer than `patience` for any answer; [`acquire`](Self::acquire) no longer than that beyond its own wait.
    ///
    /// This is no timeout for a slow store, which is what [`Timeout`](crate::Timeout) is for: it keeps a call that
    /// nothing can answer from hanging for ever. So its end is an error in every
    /// [`FailureMode`](tollgate_core::FailureMode).
    #[must_use]
    pub fn patience(self, patience: Duration) -> Self {
        Self { patience, ..self }
    }

    /// The limiter.
    pub const fn limiter(&self) -> &Limiter<S> {
        &self.limiter
    }

    /// [`Limiter::hit`], blocking.
    ///
    /// # Errors
    /// As [`Limiter::hit`], and [`ErrorKind::Timeout`] at the end of the [`patience`](Self::patience).
    pub fn hit(&self, subject: impl AsRef<[u8]>) -> Result<Decision<'_>> {
        self.charging(self.limiter.hit(subject.as_ref()))
    }

    /// [`Limiter::hit_n`], blocking.
    ///
    /// # Errors
    /// As [`Limiter::hit_n`], and [`ErrorKind::Timeout`] at the end of the [`patience`](Self::patience).
    pub fn hit_n(&self, subject: impl AsRef<[u8]>, units: u64) -> Result<Decision<'_>> {
        self.charging(self.limiter.hit_n(subject.as_ref(), units))
    }

    /// [`Limiter::peek`], blocking.
    ///
    /// # Errors
    /// As [`Limiter::peek`], and [`ErrorKind::Timeout`] at the end of the [`patience`](Self::patience).
    pub fn peek(&self, subject: impl AsRef<[u8]>) -> Result<Decision<'_>> {
        self.harmless(self.limiter.peek(subject.as_ref()))
    }

    /// [`Limiter::peek_n`], blocking.
    ///
    /// # Errors
    /// As [`Limiter::peek_n`], and [`ErrorKind::Timeout`] at the end of the [`patience`](Self::patience).
    pub fn peek_n(&self, subject: impl AsRef<[u8]>, units: u64) -> Result<Decision<'_>> {
        self.harmless(self.limiter.peek_n(subject.as_ref(), units))
    }

    /// [`Limiter::reset`], blocking.
    ///
    /// # Errors
    /// As [`Limiter::reset`], and [`ErrorKind::Timeout`] at the end of the [`patience`](Self::patience).
    pub fn reset(&self, subject: impl AsRef<[u8]>) -> Result<bool> {
        self.harmless(self.limiter.reset(subject.as_ref()))
    }

    /// [`Limiter::reserve`], blocking.
    ///
    /// # Errors
    /// As [`Limiter::reserve`], and [`ErrorKind::Timeout`] at the end of the [`patience`](Self::patience).
    pub fn reserve(&self, subject: impl AsRef<[u8]>, units: u64) -> Result<Reservation<'_>> {
        self.charging(self.limiter.reserve(subject.as_ref(), units))
    }

    /// [`Limiter::settle`], blocking.
    ///
    /// # Errors
    /// As [`Limiter::settle`], and [`ErrorKind::Timeout`] at the end of the [`patience`](Self::patience).
    pub fn settle(&self, receipt: Receipt, actual: u64) -> Result<Report> {
        self.charging(self.limiter.settle(receipt, actual))
    }

    /// [`Limiter::acquire`], blocking while it waits for the units.
    ///
    /// # Errors
    /// As [`Limiter::acquire`], and [`ErrorKind::Timeout`] if the answer is still missing when the longest wait and then
    /// the [`patience`](Self::patience) have passed.
    pub fn acquire(&self, subject: impl AsRef<[u8]>, acquire: Acquire) -> Result<Decision<'_>> {
        let longest = self.patience.saturating_add(acquire.max_wait());
        let call = self.limiter.acquire(subject.as_ref(), acquire);
        let answer = self.driver.wait_at_most(longest, call);
        answer.unwrap_or_else(|| Err(given_up(longest).with_charge_unknown()))
    }

    fn charging<T>(&self, call: impl Future<Output = Result<T>>) -> Result<T> {
        let answer = self.driver.wait_at_most(self.patience, call);
        answer.unwrap_or_else(|| Err(given_up(self.patience).with_charge_unknown()))
    }

    fn harmless<T>(&self, call: impl Future<Output = Result<T>>) -> Result<T> {
        let answer = self.driver.wait_at_most(self.patience, call);
        answer.unwrap_or_else(|| Err(given_up(self.patience)))
    }
}

#[cold]
fn given_up(after: Duration) -> Error {
    Error::new(
        ErrorKind::Timeout,
        format!(
            "no answer within {after:?}; if this thread runs the runtime that drives the store's connections, \
             open them inside of `Blocking::connect`"
        ),
    )
}
