//! The table: all keys and their states, in shards that are locked one by one.

use std::hash::{BuildHasher, Hasher};

use crossbeam_utils::CachePadded;
use tollgate_core::{Check, Key, Op, Rule, State, Timestamp, Verdict};

use crate::entry::{Moment, halves};
use crate::kinds::Kind;
use crate::pace::Pace;
use crate::population::Population;
use crate::shard::{Context, News, Shard, hash_of_key};
use crate::sync::{Lock, RealLock};

/// Keys and states in shards, each under a lock of its own.
#[derive(Debug)]
pub(crate) struct Table<H, L = RealLock<Shard>> {
    shards: Box<[CachePadded<L>]>,
    hasher: H,
    population: Population,
}

/// Keys in one shard when the table is full: few enough that a shard grows within a fraction of a millisecond.
const KEYS_PER_SHARD: usize = 16_384;
const MIN_SHARDS: usize = 16;
const MAX_SHARDS: usize = 4096;
/// Which bits of a hash choose the shard: not the lowest and not the highest, which choose the place within it.
const SHARD_SHIFT: u32 = 40;

impl<H: BuildHasher, L: Lock<Shard>> Table<H, L> {
    /// A table of up to `capacity` keys.
    pub(crate) fn new(capacity: usize, hasher: H) -> Self {
        let shards = (capacity / KEYS_PER_SHARD)
            .next_power_of_two()
            .clamp(MIN_SHARDS, MAX_SHARDS);
        Self {
            shards: (0..shards)
                .map(|_| CachePadded::new(L::new(Shard::new(capacity / shards))))
                .collect(),
            hasher,
            population: Population::new(capacity),
        }
    }

    pub(crate) const fn population(&self) -> &Population {
        &self.population
    }

    /// Judges a bucket that is at hand. `None` means that nothing was done.
    ///
    /// The clock is read before the key is locked, so that the two waits overlap. Where another call on the key came
    /// between and read a later instant, the clock is read once more: no charge is ever moved back in time but by a step
    /// of the clock itself.
    ///
    /// Returns the key's hash, the instant, the verdict, and whether the clerk should hear that the key is in use.
    #[inline(always)]
    pub(crate) fn judge_bucket(
        &self,
        check: &Check<'_>,
        clock: impl Fn() -> Timestamp,
    ) -> Option<(u64, Timestamp, Verdict, bool)> {
        let Rule::Bucket(rule) = check.policy.rule() else {
            return None;
        };
        let mut now = clock();
        // Only these leave the check, so that it need not lie in memory.
        let (subject, digest) = (check.key.subject(), halves(check.key.digest()));
        let hash = hash_of_key(self.hash_subject(subject), digest);
        let mut shard = self.shard(hash).lock();
        let pace = Pace::of_bucket(rule);
        let kind = shard.kind_id(Kind { digest, pace })?;
        let entry = (shard.entries).find_mut(hash, |entry| entry.is(kind, subject))?;
        let State::Bucket(bucket) = &mut entry.state else {
            return None;
        };
        if now < bucket.updated {
            now = once_more(&clock);
        }
        let (kept, verdict) = rule.step(Some(*bucket), now, check.op);
        if let Some(kept) = kept {
            *bucket = kept;
        }
        let looks_only = matches!(check.op, Op::Peek(_));
        let stale = !looks_only && entry.note_hit(|| self.population.epoch());
        Some((hash, now, verdict, stale))
    }

    /// Judges one check at the moment that `moment` reads once the key is locked.
    pub(crate) fn judge(
        &self,
        check: &Check<'_>,
        moment: impl FnOnce() -> Moment,
    ) -> (Moment, Verdict, News) {
        let hash = self.hash(&check.key);
        let mut shard = self.shard(hash).lock();
        let moment = moment();
        let mut context = self.context();
        let verdict = match shard.find_mut(hash, &check.key) {
            None => shard.judge_new(hash, check, moment, &mut context),
            Some((entry, kinds)) => {
                let verdict = entry.step(check.policy.rule(), moment, check.op, kinds);
                if entry.is_stale(self.population.epoch()) {
                    context.news.touched.push(hash);
                }
                verdict
            }
        };
        (moment, verdict, context.news)
    }

    /// Forgets a key. Returns whether there was anything to forget.
    pub(crate) fn reset(&self, key: &Key<'_>, clock: Timestamp) -> (bool, News) {
        let hash = self.hash(key);
        let mut context = self.context();
        let existed = (self.shard(hash).lock()).reset(hash, key, clock, &mut context);
        (existed, context.news)
    }

    /// See [`Shard::release`].
    pub(crate) fn release(&self, hash: u64, for_capacity: bool, clock: Timestamp) -> Option<u64> {
        let moment = Moment::of_clock(clock);
        let mut shard = self.shard(hash).lock();
        shard.release(hash, for_capacity, moment, &self.population, |subject| {
            self.hash_subject(subject)
        })
    }

    /// Sweeps a part of the shard whose turn it is in this tick.
    pub(crate) fn sweep(&self, tick: u64, clock: Timestamp) {
        let shards = u64::try_from(self.shards.len()).unwrap_or(u64::MAX);
        let index = usize::try_from(tick % shards).unwrap_or(0);
        let mut shard = self.shards[index].lock();
        shard.sweep_some(Moment::of_clock(clock), &self.population, |subject| {
            self.hash_subject(subject)
        });
    }

    /// How many overflow cells there are.
    pub(crate) fn overflow_cells(&self) -> usize {
        self.shards
            .iter()
            .map(|shard| shard.lock().overflow.len())
            .sum()
    }

    fn context(&self) -> Context<'_, impl Fn(&[u8]) -> u64> {
        Context {
            hash_subject: |subject: &[u8]| self.hash_subject(subject),
            population: &self.population,
            news: News::default(),
        }
    }

    #[inline(always)]
    pub(crate) fn hash(&self, key: &Key<'_>) -> u64 {
        hash_of_key(self.hash_subject(key.subject()), halves(key.digest()))
    }

    #[inline(always)]
    fn hash_subject(&self, subject: &[u8]) -> u64 {
        let mut hasher = self.hasher.build_hasher();
        hasher.write(subject);
        hasher.finish()
    }

    #[inline]
    fn index(&self, hash: u64) -> usize {
        usize::try_from(hash >> SHARD_SHIFT & u64::from(u32::MAX)).unwrap_or(0)
            & (self.shards.len() - 1)
    }

    #[inline]
    pub(crate) fn shard(&self, hash: u64) -> &L {
        &self.shards[self.index(hash)]
    }
}

#[cold]
#[inline(never)]
fn once_more(clock: &impl Fn() -> Timestamp) -> Timestamp {
    clock()
}

mod batch;
#[cfg(test)]
mod interleavings;
#[cfg(test)]
mod release;
