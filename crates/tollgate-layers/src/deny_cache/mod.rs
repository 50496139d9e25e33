//! A local memory of denials, so that a client that hammers costs the store next to nothing.

mod clock;
mod denial;
mod denials;
mod options;

use std::time::Duration;

use smallvec::SmallVec;
use tollgate_core::{
    Batch, Capabilities, Check, Clock, Key, Op, Result, Source, Store, Timestamp, Verdict, Verdicts,
};

pub use clock::MonotonicClock;
pub use options::DenyCacheOptions;

use denial::{Denial, Moment, stays_denied};
use denials::{Denials, Seen};

/// A store that remembers whom it has denied, and denies them again by itself until they may come back.
///
/// While a key is over its limit, only time can let it in again. So the answer to its next hit is already known, and
/// asking for it is wasted. With this around a store, a client that ignores its `retry_after` is answered from memory.
///
/// # What is promised
///
/// **A denial ends no later than in the store.** It ends by the store's own clock: at the instant the store was asked,
/// this process begins to count what time goes by, and the store judged at that instant or later. What is answered is
/// what the store would answer after that much time if nobody else had charged the key: `remaining`, `retry_after` and
/// `reset_after` go on as time does. They are early by the time the call took to reach the store, at most, and the
/// clocks of both machines are taken to run at the same rate. (Where the system's monotonic clock stands still in a
/// machine asleep, the denial sleeps too.) A batch that names its instant is told time by such instants only.
///
/// **Nothing that was done through this value is overlooked.** A reset, a settlement or an admitted hit makes it forget
/// the key before the call returns, and a denial that was judged before and arrives after is not remembered. That holds for calls
/// that failed or were dropped as well, if they may have been carried out before.
///
/// **What others did is seen within [`max_age`](DenyCacheOptions::max_age)**, one second unless set: when another
/// process resets the key, gives units back or settles, a denial still answers until it is that old. (What others
/// charge meanwhile leaves a denial right, though `retry_after` may be too short.)
///
/// **The store is asked about a denied key once per `max_age` or `retry_after`, whichever is shorter**, however often
/// that key is hit, and beyond that only by the calls that began before the first answer came back. A key that is
/// driven out because more than [`capacity`](DenyCacheOptions::capacity) keys are denied at once is asked about again.
///
/// # What is answered from memory
///
/// Hits and peeks of any cost that the key's state denies, under exactly the rule that it was judged by: where a quota
/// has changed, the store is asked. A batch of several checks is remembered as a whole, and answered if none of its
/// keys has been touched since and it would be denied as a whole; a batch with a key that others charge all the time (a
/// global limit beside one per user) mostly goes to the store.
///
/// Not remembered:
/// - a cost that never fits, and answers that do not come from the store ([`Source::is_degraded`]);
/// - what only a peek was told: a peek does not correct a stored time that lies in the future, so it does not tell all;
/// - a sliding log that lacked more than one unit, or that stood in a denied batch without being what denied: when its
///   hits expire is not in the answer. So a sliding log's denial is answered for the same cost only.
///
/// Answers from memory say [`Source::DenyCache`].
///
/// # Metrics
///
/// The gauge `tollgate_deny_cache_entries` and the counter `tollgate_deny_cache_evictions_total` (keys driven out by
/// capacity), both with the label `store`.
///
/// ```
/// use tollgate_layers::DenyCache;
/// use tollgate_memory::{Limiter, MemoryStore, Quota, Source};
///
/// # futures::executor::block_on(async {
/// let limiter = Limiter::new(DenyCache::new(MemoryStore::new()), Quota::per_hour(1));
/// assert!(limiter.hit("user:42").await?.is_allowed());
/// assert_eq!(limiter.hit("user:42").await?.source(), Source::Store);
/// assert_eq!(limiter.hit("user:42").await?.source(), Source::DenyCache);
/// # Ok::<(), tollgate_memory::Error>(())
/// # })?;
/// # Ok::<(), tollgate_memory::Error>(())
/// ```
#[derive(Debug)]
pub struct DenyCache<S, C = MonotonicClock> {
    store: S,
    denials: Denials,
    max_age: Duration,
    clock: C,
}

impl<S: Store> DenyCache<S> {
    /// Remembers the denials of `store`, with the options that hold unless set.
    #[must_use]
    pub fn new(store: S) -> Self {
        Self::unchecked(store, DenyCacheOptions::new())
    }

    /// Remembers the denials of `store` as `options` say.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`](tollgate_core::ErrorKind::InvalidInput) for options outside of their range.
    pub fn with_options(store: S, options: DenyCacheOptions) -> Result<Self> {
        options.check()?;
        Ok(Self::unchecked(store, options))
    }

    fn unchecked(store: S, options: DenyCacheOptions) -> Self {
        Self {
            store,
            denials: Denials::new(options.max_keys(), options.store_name()),
            max_age: options.greatest_age(),
            clock: MonotonicClock::new(),
        }
    }
}

impl<S, C> DenyCache<S, C> {
    /// Tells the age of denials by `clock`, which must never step back: for tests in virtual time.
    #[must_use]
    pub fn clock<D: Clock>(self, clock: D) -> DenyCache<S, D> {
        DenyCache {
            store: self.store,
            denials: self.denials,
            max_age: self.max_age,
            clock,
        }
    }

    /// The store inside.
    pub const fn inner(&self) -> &S {
        &self.store
    }

    /// About how many keys are remembered now.
    #[must_use]
    pub fn remembered(&self) -> u64 {
        self.denials.len()
    }
}

impl<S: Store, C: Clock> DenyCache<S, C> {
    /// The answer from memory, or what is to be known once the store has answered.
    fn ask<'a>(&'a self, batch: Batch<'a>) -> std::result::Result<Verdicts, Question<'a>> {
        let moment = match batch.instant() {
            Some(reading) => Moment {
                reading,
                named: true,
            },
            None => Moment {
                reading: self.clock.now(),
                named: false,
            },
        };
        let mut seen = SmallVec::new();
        let mut known: SmallVec<[Denial; 1]> = SmallVec::new();
        for check in batch.checks() {
            let (as_seen, denial) = self.denials.look_up(&check.key);
            seen.push(as_seen);
            known.extend(denial);
        }
        if let Some((now, verdicts)) = answer(batch.checks(), &known, moment) {
            let verdicts = match verdicts[..] {
                [verdict] => Verdicts::one(now, verdict),
                _ => Verdicts::many(now, verdicts.into_vec().into()),
            };
            return Ok(verdicts.with_source(Source::DenyCache));
        }
        Err(Question {
            denials: &self.denials,
            max_age: self.max_age,
            batch,
            moment,
            seen,
        })
    }
}

/// What the store would answer to `checks`, if it would deny them and all of them are known.
fn answer(
    checks: &[Check<'_>],
    known: &[Denial],
    moment: Moment,
) -> Option<(Timestamp, SmallVec<[Verdict; 1]>)> {
    let (first, others) = known.split_first()?;
    if known.len() != checks.len() || !others.iter().all(|other| first.is_told_with(other)) {
        return None;
    }
    let now = first.store_time(moment)?;
    let verdicts = checks.iter().zip(known);
    let verdicts: SmallVec<[Verdict; 1]> = verdicts
        .map(|(check, denial)| denial.verdict(check, now))
        .collect::<Option<_>>()?;
    let is_hit = |check: &Check<'_>| matches!(check.op, Op::Hit(_));
    let has_hits = checks.iter().any(is_hit);
    let denied = checks
        .iter()
        .zip(&verdicts)
        .any(|(check, verdict)| !verdict.is_allowed() && (is_hit(check) || !has_hits));
    denied.then_some((now, verdicts))
}

/// A batch on its way to the store.
///
/// Dropped before the answer has come, it counts as carried out.
struct Question<'a> {
    denials: &'a Denials,
    max_age: Duration,
    batch: Batch<'a>,
    moment: Moment,
    seen: SmallVec<[Seen; 2]>,
}

impl Question<'_> {
    /// Takes the store's answer in.
    fn learn(mut self, answer: &Result<Verdicts>) {
        let seen = std::mem::take(&mut self.seen);
        match answer {
            Ok(verdicts) if self.is_telling(verdicts) => self.remember(verdicts, &seen),
            Err(error) if !error.may_have_charged() => {}
            _ => self.forget(&seen),
        }
    }

    /// Lets it be: the store was not asked.
    fn unasked(mut self) {
        self.seen.clear();
    }

    /// Whether the answer tells what is left of every key: the hits were denied, and by the store.
    fn is_telling(&self, verdicts: &Verdicts) -> bool {
        let checks = self.batch.checks();
        !verdicts.is_allowed()
            && matches!(verdicts.source(), Source::Store | Source::NativeCounter)
            && verdicts.as_slice().len() == checks.len()
            && checks.iter().all(|check| matches!(check.op, Op::Hit(_)))
    }

    fn remember(&self, verdicts: &Verdicts, seen: &[Seen]) {
        let checks = self.batch.checks();
        let Some(denied_for) = stays_denied(checks, verdicts) else {
            return self.forget(seen);
        };
        let lives = denied_for.min(self.max_age);
        let at = verdicts.at();
        for ((check, verdict), seen) in checks.iter().zip(verdicts.as_slice()).zip(seen) {
            match Denial::new(check, *verdict, at, self.moment, lives) {
                Some(denial) => self.denials.remember(&check.key, denial, *seen),
                None => self.denials.forget_seen(&check.key, *seen),
            }
        }
    }

    fn forget(&self, seen: &[Seen]) {
        for (check, seen) in self.batch.checks().iter().zip(seen) {
            if !matches!(check.op, Op::Peek(_)) {
                self.denials.forget_seen(&check.key, *seen);
            }
        }
    }
}

impl Drop for Question<'_> {
    fn drop(&mut self) {
        let seen = std::mem::take(&mut self.seen);
        self.forget(&seen);
    }
}

/// Keys that are being reset. They are forgotten when that is over, however it ends.
struct Reset<'a> {
    denials: &'a Denials,
    keys: &'a [Key<'a>],
}

impl Drop for Reset<'_> {
    fn drop(&mut self) {
        for key in self.keys {
            self.denials.forget(key);
        }
    }
}

impl<S: Store, C: Clock> Store for DenyCache<S, C> {
    async fn apply<'a>(&'a self, batch: Batch<'a>) -> Result<Verdicts> {
        let question = match self.ask(batch) {
            Ok(verdicts) => return Ok(verdicts),
            Err(question) => question,
        };
        let answer = self.store.apply(batch).await;
        question.learn(&answer);
        answer
    }

    async fn reset<'a>(&'a self, keys: &'a [Key<'a>]) -> Result<u64> {
        let _reset = Reset {
            denials: &self.denials,
            keys,
        };
        self.store.reset(keys).await
    }

    fn capabilities(&self) -> Capabilities {
        self.store.capabilities()
    }

    fn apply_now(&self, batch: &Batch<'_>) -> Option<Result<Verdicts>> {
        let question = match self.ask(*batch) {
            Ok(verdicts) => return Some(Ok(verdicts)),
            Err(question) => question,
        };
        let Some(answer) = self.store.apply_now(batch) else {
            question.unasked();
            return None;
        };
        question.learn(&answer);
        Some(answer)
    }
}
