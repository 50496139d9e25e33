//! The usual layers around a store, in the order that works.

mod either;

use std::time::Duration;

use tollgate_core::{Error, ErrorKind, Result, SharedStore, Store};

use self::either::Either;
use crate::{
    Breaker, BreakerOptions, DenyCache, DenyCacheOptions, Fallback, Instrumented, Share, Timeout,
};

/// The usual layers around a store, in the order that works, whatever order they are asked for in.
///
/// Outermost first: [`Instrumented`], [`DenyCache`], [`Fallback`], [`Breaker`], [`Timeout`], the store. Unless told
/// otherwise it has a timeout, a breaker and metrics; the other two are asked for.
///
/// The order is not a matter of taste. The breaker counts what the timeout ends, so the timeout is inside. It must not
/// take the stand-in's answers for the store's health, so the fallback is outside. Denials from memory need neither, and
/// metrics show what callers get.
///
/// ```
/// use std::time::Duration;
/// use tollgate_layers::{DenyCacheOptions, Share, Stack};
/// use tollgate_memory::{Limiter, MemoryStore, Quota};
///
/// let usual = Stack::around(MemoryStore::new()).build()?;
///
/// let store = Stack::around(MemoryStore::new())
///     .name("redis")
///     .timeout(Duration::from_millis(50))
///     .fallback(Share::of(1, 4)?)
///     .deny_cache(DenyCacheOptions::new())
///     .build()?;
/// let limiter = Limiter::new(store, Quota::per_minute(100));
/// # Ok::<(), tollgate_memory::Error>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "nothing is built until `build`"]
pub struct Stack<S> {
    store: S,
    name: &'static str,
    timeout: Option<Duration>,
    breaker: Option<BreakerOptions>,
    fallback: Option<Share>,
    deny_cache: Option<DenyCacheOptions>,
}

impl<S: Store> Stack<S> {
    /// A timeout, a breaker and metrics around `store`.
    pub const fn around(store: S) -> Self {
        Self {
            store,
            name: crate::DEFAULT_NAME,
            timeout: Some(Timeout::<S>::DEFAULT),
            breaker: Some(BreakerOptions::new()),
            fallback: None,
            deny_cache: None,
        }
    }

    /// What every layer calls the store in errors, events and metrics, `"store"` unless set. Options that bring a name of
    /// their own are overruled.
    pub const fn name(mut self, name: &'static str) -> Self {
        self.name = name;
        self
    }

    /// Bounds each call of the store by `bound` instead of [`Timeout::DEFAULT`].
    pub const fn timeout(mut self, bound: Duration) -> Self {
        self.timeout = Some(bound);
        self
    }

    /// Leaves the timeout out, for a store whose driver has one.
    pub const fn without_timeout(mut self) -> Self {
        self.timeout = None;
        self
    }

    /// Opens the breaker and probes as `options` say.
    pub const fn breaker(mut self, options: BreakerOptions) -> Self {
        self.breaker = Some(options);
        self
    }

    /// Leaves the breaker out: in an outage each call waits for the timeout.
    pub const fn without_breaker(mut self) -> Self {
        self.breaker = None;
        self
    }

    /// Lets a memory store enforce `share` of every limit while the store is away.
    pub const fn fallback(mut self, share: Share) -> Self {
        self.fallback = Some(share);
        self
    }

    /// Answers denied keys from memory until they may come back, as `options` say.
    pub const fn deny_cache(mut self, options: DenyCacheOptions) -> Self {
        self.deny_cache = Some(options);
        self
    }

    /// Builds it.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`] for options that one of the layers refuses, and for layers that do not go together:
    /// - a timeout longer than the breaker's longest backoff: a probe would be given up on before it is done;
    /// - a fallback without a timeout: a store that hangs would never be stood in for;
    /// - a fallback around a store that has one.
    pub fn build(self) -> Result<SharedStore> {
        self.check()?;
        let name = self.name;
        // Erased, or the layers' futures around that of a driver pass the compiler's recursion limit in the user's crate.
        let store = SharedStore::new(self.store);
        let store = match self.timeout {
            Some(bound) => Either::Wrapped(Timeout::within(store, bound)?.name(name)),
            None => Either::Bare(store),
        };
        let store = match self.breaker {
            Some(options) => Either::Wrapped(Breaker::with_options(store, options.name(name))?),
            None => Either::Bare(store),
        };
        let store = match self.fallback {
            Some(share) => Either::Wrapped(Fallback::new(store, share).name(name)),
            None => Either::Bare(store),
        };
        let store = match self.deny_cache {
            Some(options) => Either::Wrapped(DenyCache::with_options(store, options.name(name))?),
            None => Either::Bare(store),
        };
        Ok(SharedStore::new(Instrumented::new(store).name(name)))
    }

    fn check(&self) -> Result<()> {
        if let (Some(bound), Some(options)) = (self.timeout, self.breaker)
            && bound > options.longest_backoff()
        {
            let longest = options.longest_backoff();
            return Err(invalid(format!(
                "the timeout of {bound:?} is longer than the breaker's longest backoff, {longest:?}; \
                 shorten the one or lengthen the other"
            )));
        }
        if self.fallback.is_none() {
            return Ok(());
        }
        if self.timeout.is_none() {
            return Err(invalid(
                "a fallback needs a timeout, or nothing stands in for a store that hangs"
                    .to_owned(),
            ));
        }
        if self.store.capabilities().fallback {
            return Err(invalid(
                "the store has a fallback already; leave one of them out".to_owned(),
            ));
        }
        Ok(())
    }
}

fn invalid(message: String) -> Error {
    Error::new(ErrorKind::InvalidInput, message)
}
