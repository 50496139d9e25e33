//! The store: table, clerk and clock.

use std::fmt;
use std::hash::BuildHasher;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use tollgate_core::{
    Batch, Capabilities, Check, Clock, InProcessStore, Key, Result, Store, Timestamp, Verdict,
    Verdicts,
};

use crate::builder::MemoryStoreBuilder;
use crate::clerk::Clerk;
use crate::clock::TscClock;
use crate::entry::Moment;
use crate::shard::{News, Promotion};
use crate::stats::Stats;
use crate::table::Table;

/// A [`Store`] in this process: exact, bounded, and without a thread, a task or a call for anybody to make.
///
/// Clones share everything. What happens when it is full is told in the [crate's documentation](crate).
pub struct MemoryStore<C = TscClock, H = ahash::RandomState> {
    core: Arc<Core<C, H>>,
    clerk: Arc<Clerk>,
}

struct Core<C, H> {
    table: Table<H>,
    clock: C,
    /// The tick in which chores were last done.
    tick: AtomicU64,
    /// Keys that the clerk let go while they were still in use.
    still_in_use: Mutex<Vec<Promotion>>,
}

/// 2^17 microseconds: the time between chores, about an eighth of a second.
const TICK: u32 = 17;

impl MemoryStore {
    /// The most keys a store holds unless told otherwise: a million, some 140 MB of short subjects, and up to 300 MB if all of
    /// them are in use and more are driven out.
    pub const DEFAULT_MAX_CAPACITY: u64 = 1_000_000;

    /// A store with the default capacity, clock and hasher.
    #[must_use]
    pub fn new() -> Self {
        Self::with_parts(1_000_000, TscClock::new(), ahash::RandomState::new())
    }

    /// A store with other settings.
    pub fn builder() -> MemoryStoreBuilder {
        MemoryStoreBuilder::new()
    }
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::new()
    }
}

impl<C: Clock, H: BuildHasher + Send + Sync + 'static> MemoryStore<C, H> {
    pub(crate) fn with_parts(max_capacity: u32, clock: C, hasher: H) -> Self {
        let capacity = usize::try_from(max_capacity).unwrap_or(usize::MAX);
        let core = Arc::new(Core {
            table: Table::new(capacity, hasher),
            clock,
            tick: AtomicU64::new(0),
            still_in_use: Mutex::new(Vec::new()),
        });
        // An eighth is left to keys that were seen once, so that newcomers never compete with keys in use.
        let residents = u64::from(max_capacity - (max_capacity / 8).max(1));
        let listener = Arc::clone(&core);
        let clerk = Clerk::new(residents, move |hash, for_capacity| {
            listener.release(hash, for_capacity);
        });
        Self {
            core,
            clerk: Arc::new(clerk),
        }
    }

    /// How many keys there are, and what became of those that had no room.
    #[must_use]
    pub fn stats(&self) -> Stats {
        let population = self.core.table.population();
        Stats {
            keys: population.keys(),
            max_capacity: population.max(),
            evicted_live: population.evicted_live(),
            overflow_cells: self.core.table.overflow_cells(),
            judged_from_shared_cells: population.shared(),
        }
    }

    fn moment(&self, at: Option<Timestamp>) -> Moment {
        let now = self.core.clock.now();
        match at {
            None => Moment::of_clock(now),
            Some(at) => Moment::named(at, now),
        }
    }

    /// Does the chores of a tick, if nobody has yet. Clock steps in either direction begin a new tick.
    #[inline]
    fn do_chores(&self, clock: Timestamp) {
        let tick = clock.as_micros() >> TICK;
        if tick != self.core.tick.load(Ordering::Relaxed) {
            self.do_chores_of(tick, clock);
        }
    }

    #[cold]
    #[inline(never)]
    fn do_chores_of(&self, tick: u64, clock: Timestamp) {
        let seen = self.core.tick.load(Ordering::Relaxed);
        let mine =
            self.core
                .tick
                .compare_exchange(seen, tick, Ordering::Relaxed, Ordering::Relaxed);
        if seen == tick || mine.is_err() {
            return;
        }
        self.core.table.sweep(tick, clock);
        if self.clerk.is_idle() {
            return;
        }
        self.clerk.run();
        let still_in_use = std::mem::take(&mut *self.core.still_in_use.lock());
        for key in still_in_use {
            self.clerk.take(key, self.core.table.population());
        }
    }

    #[cold]
    #[inline(never)]
    fn touch(&self, hash: u64) {
        // The clerk may just have let it go: then it comes back, and is asked after in a while.
        if !self.clerk.touch(hash) {
            let population = self.core.table.population();
            self.clerk.take((hash, Core::<C, H>::ASK_AGAIN), population);
        }
    }

    fn tell(&self, news: News) {
        for key in news.promoted {
            self.clerk.take(key, self.core.table.population());
        }
        for hash in news.touched {
            self.touch(hash);
        }
    }
}

impl<C: Clock, H: BuildHasher> Core<C, H> {
    /// A second.
    const ASK_AGAIN: u64 = 1_000_000;

    fn release(&self, hash: u64, for_capacity: bool) {
        let still = (self.table).release(hash, for_capacity, self.clock.now());
        if let Some(lives) = still {
            let lives = lives.max(Self::ASK_AGAIN);
            self.still_in_use.lock().push((hash, lives));
        }
    }
}

impl<C: Clock, H: BuildHasher + Send + Sync + 'static> InProcessStore for MemoryStore<C, H> {
    fn judge(&self, batch: &Batch<'_>) -> Result<Verdicts> {
        let table = &self.core.table;
        let moment = || self.moment(batch.instant());
        let (moment, verdicts, news) = match batch.checks() {
            [check] => {
                let (moment, verdict, news) = table.judge(check, moment);
                (moment, Verdicts::one(moment.judged, verdict), news)
            }
            _ => table.judge_many(batch, moment),
        };
        self.tell(news);
        self.do_chores(moment.clock);
        Ok(verdicts)
    }

    // Inlined, the check is never built: its parts stay in registers.
    #[inline(always)]
    fn judge_at_hand(&self, check: &Check<'_>) -> Option<(Timestamp, Verdict)> {
        let (hash, now, verdict, stale) =
            (self.core.table).judge_bucket(check, || self.core.clock.now())?;
        if stale {
            self.touch(hash);
        }
        self.do_chores(now);
        Some((now, verdict))
    }
}

impl<C: Clock, H: BuildHasher + Send + Sync + 'static> Store for MemoryStore<C, H> {
    async fn apply<'a>(&'a self, batch: Batch<'a>) -> Result<Verdicts> {
        self.judge(&batch)
    }

    async fn reset<'a>(&'a self, keys: &'a [Key<'a>]) -> Result<u64> {
        let mut existed = 0;
        for key in keys {
            let (one, news) = self.core.table.reset(key, self.core.clock.now());
            existed += u64::from(one);
            self.tell(news);
        }
        Ok(existed)
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::ALL
    }

    #[inline]
    fn apply_now(&self, batch: &Batch<'_>) -> Option<Result<Verdicts>> {
        Some(self.judge(batch))
    }
}

impl<C, H> Clone for MemoryStore<C, H> {
    fn clone(&self) -> Self {
        Self {
            core: Arc::clone(&self.core),
            clerk: Arc::clone(&self.clerk),
        }
    }
}

impl<C: Clock, H: BuildHasher + Send + Sync + 'static> fmt::Debug for MemoryStore<C, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryStore")
            .field("clock", &self.core.clock)
            .field("stats", &self.stats())
            .finish_non_exhaustive()
    }
}
