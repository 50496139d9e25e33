//! One part of the table: keys, and the hand that goes round over them.

use hashbrown::HashTable;
use tollgate_core::{Check, Key, Op, State, Timestamp, Verdict};

use crate::entry::{Entry, Moment, halves};
use crate::overflow::{Forgotten, Origin, Overflow};
use crate::pace::Pace;
use crate::population::Population;

/// One part of the table. Everything in it is under one lock.
#[derive(Debug)]
pub(crate) struct Shard {
    pub(crate) entries: HashTable<Entry>,
    pub(crate) overflow: Overflow,
    /// The next bucket that the hand looks at.
    hand: usize,
}

/// A key that the clerk takes over: its hash, and for how many microseconds it stays at least.
pub(crate) type Promotion = (u64, u64);

/// What the clerk has to hear, once no shard is locked any more.
#[derive(Debug, Default)]
pub(crate) struct News {
    /// Keys it takes over.
    pub(crate) promoted: Vec<Promotion>,
    /// Hashes of keys it has not heard of for a while, and that are in use.
    pub(crate) touched: Vec<u64>,
}

/// What a call needs besides the shard.
#[derive(Debug)]
pub(crate) struct Context<'a, F> {
    pub(crate) hash_of: F,
    pub(crate) population: &'a Population,
    pub(crate) news: News,
}

impl Shard {
    /// Keys that one call hands to the clerk at most.
    pub(crate) const MAX_PROMOTIONS: usize = 4;
    /// Buckets that the hand passes for one new key at most.
    const MAX_STEPS: usize = 256;
    /// Buckets that the hand passes for one new key while there is room, so that nothing idle outlives many newcomers.
    const IDLE_STEPS: usize = 4;

    /// Buckets that the hand passes in one tick.
    const TICK_STEPS: usize = 4_096;

    pub(crate) fn new(capacity: usize) -> Self {
        Self {
            entries: HashTable::new(),
            overflow: Overflow::new(capacity),
            hand: 0,
        }
    }

    /// Judges a key that has no entry, and makes one if it was charged.
    #[inline(never)]
    pub(crate) fn judge_new<F: Fn(&Entry) -> u64>(
        &mut self,
        hash: u64,
        check: &Check<'_>,
        moment: Moment,
        context: &mut Context<'_, F>,
    ) -> Verdict {
        let (mut state, returned) = self.origin(hash, check, moment, context.population);
        let before = match check.op {
            Op::Settle(_) => state.clone(),
            Op::Hit(_) | Op::Peek(_) => None,
        };
        let rule = check.policy.rule();
        let verdict = rule.step(&mut state, moment.judged, check.op);
        let charged = match check.op {
            Op::Hit(_) => verdict.is_allowed(),
            Op::Peek(_) => false,
            Op::Settle(_) => state != before,
        };
        if let Some(state) = state.filter(|_| charged) {
            if returned {
                self.overflow.take_back(halves(check.key.digest()), hash);
            }
            self.insert(hash, check, state, moment, context);
        }
        verdict
    }

    /// The state that a key without an entry begins with, and whether it is the key's own, from a cell of its own.
    pub(crate) fn origin(
        &mut self,
        hash: u64,
        check: &Check<'_>,
        moment: Moment,
        population: &Population,
    ) -> (Option<State>, bool) {
        let digest = halves(check.key.digest());
        let moves_back = !matches!(check.op, Op::Peek(_));
        let rule = check.policy.rule();
        match (self.overflow).origin(digest, hash, rule, moment, moves_back) {
            Origin::New => (None, false),
            Origin::Returned(state) => (Some(state), true),
            Origin::Shared(state) => {
                population.count_shared();
                (Some(state), false)
            }
        }
    }

    /// Adds a key that has no entry yet. A cell of its own is taken back first.
    pub(crate) fn insert<F: Fn(&Entry) -> u64>(
        &mut self,
        hash: u64,
        check: &Check<'_>,
        state: State,
        moment: Moment,
        context: &mut Context<'_, F>,
    ) {
        let pace = Pace::of(check.policy.rule());
        let entry = Entry::new(&check.key, state, pace, moment);
        self.insert_entry(hash, entry, moment, context);
    }

    fn insert_entry<F: Fn(&Entry) -> u64>(
        &mut self,
        hash: u64,
        entry: Entry,
        moment: Moment,
        context: &mut Context<'_, F>,
    ) {
        if context.population.is_full() {
            self.make_room(moment, context);
        } else {
            self.sweep(Self::IDLE_STEPS, moment, context.population);
        }
        (self.entries).insert_unique(hash, entry, &context.hash_of);
        context.population.add(1);
    }

    /// Forgets a key. Returns whether there was anything to forget.
    pub(crate) fn reset<F: Fn(&Entry) -> u64>(
        &mut self,
        hash: u64,
        key: &Key<'_>,
        clock: Timestamp,
        context: &mut Context<'_, F>,
    ) -> bool {
        let removed = match self.entries.find_entry(hash, |entry| entry.is(key)) {
            Ok(entry) => {
                let (entry, _) = entry.remove();
                context.population.remove(1);
                !entry.forgiven
            }
            Err(_) => false,
        };
        let Forgotten { own, shared } = self.overflow.forget(halves(key.digest()), hash);
        if let Some((expiry, named)) = shared {
            let entry = Entry::forgiven(key, expiry, named, clock);
            self.insert_entry(hash, entry, Moment::of_clock(clock), context);
        }
        removed || own
    }

    /// Takes one key out, so that another has room: the first that the hand meets that is idle or was not hit again.
    ///
    /// Keys that were hit again go to the clerk, which decides about them from then on.
    fn make_room<F: Fn(&Entry) -> u64>(&mut self, moment: Moment, context: &mut Context<'_, F>) {
        for _ in 0..self.entries.num_buckets().min(Self::MAX_STEPS) {
            let bucket = self.next_bucket();
            let Some(entry) = self.entries.get_bucket_mut(bucket) else {
                continue;
            };
            if entry.resident {
                continue;
            }
            if entry.used && entry.is_live(moment) {
                if entry.named {
                    entry.used = false;
                    continue;
                }
                if context.news.promoted.len() < Self::MAX_PROMOTIONS {
                    entry.resident = true;
                    entry.stamp = context.population.epoch();
                    let promotion = ((context.hash_of)(entry), entry.stays_for(moment.clock));
                    context.news.promoted.push(promotion);
                    continue;
                }
            }
            self.evict(bucket, moment, context);
            return;
        }
    }

    fn evict<F: Fn(&Entry) -> u64>(
        &mut self,
        bucket: usize,
        moment: Moment,
        context: &Context<'_, F>,
    ) {
        if let Ok(entry) = self.entries.get_bucket_entry(bucket) {
            let (entry, _) = entry.remove();
            context.population.remove(1);
            let hash = (context.hash_of)(&entry);
            self.fold(entry, hash, moment, context.population);
        }
    }

    fn fold(&mut self, entry: Entry, hash: u64, moment: Moment, population: &Population) {
        if entry.is_live(moment) && !entry.forgiven {
            population.count_evicted_live();
            self.overflow.fold(entry, hash, moment);
        }
    }

    /// Takes out what is idle among the next `steps` buckets, but for what the clerk decides about.
    fn sweep(&mut self, steps: usize, moment: Moment, population: &Population) {
        for _ in 0..steps.min(self.entries.num_buckets()) {
            let bucket = self.next_bucket();
            let idle = (self.entries.get_bucket(bucket))
                .is_some_and(|entry| !entry.resident && entry.is_idle(moment.clock));
            if idle && let Ok(entry) = self.entries.get_bucket_entry(bucket) {
                drop(entry.remove());
                population.remove(1);
            }
        }
    }

    /// A part of a round of the hand, and room given back where most of it is empty.
    pub(crate) fn sweep_some(
        &mut self,
        moment: Moment,
        population: &Population,
        hash_of: impl Fn(&Entry) -> u64,
    ) {
        self.sweep(Self::TICK_STEPS, moment, population);
        if self.hand < Self::TICK_STEPS {
            // Once a round is enough.
            self.overflow.sweep(moment);
        }
        if self.entries.len() < self.entries.capacity() / 4 {
            self.entries.shrink_to(self.entries.len() * 2, hash_of);
        }
    }

    /// Takes out the keys that the clerk lets go. Returns for how long a key that is still in use stays at least.
    ///
    /// `for_capacity` says that the clerk had no room; otherwise their time was over, as far as it knew.
    pub(crate) fn release(
        &mut self,
        hash: u64,
        for_capacity: bool,
        moment: Moment,
        population: &Population,
        hash_of: impl Fn(&Entry) -> u64,
    ) -> Option<u64> {
        let mut stays = None;
        // Two keys of one hash are one to the clerk.
        while let Ok(found) = self.entries.find_entry(hash, |entry| {
            entry.resident
                && hash_of(entry) == hash
                && (for_capacity || entry.is_idle(moment.clock))
        }) {
            let (entry, _) = found.remove();
            population.remove(1);
            self.fold(entry, hash, moment, population);
        }
        let still = |entry: &&Entry| entry.resident && hash_of(entry) == hash;
        for entry in self.entries.iter_hash(hash).filter(still) {
            stays = stays.max(Some(entry.stays_for(moment.clock)));
        }
        stays
    }

    fn next_bucket(&mut self) -> usize {
        let bucket = self.hand;
        self.hand = bucket + 1;
        if self.hand >= self.entries.num_buckets() {
            self.hand = 0;
        }
        bucket
    }
}
