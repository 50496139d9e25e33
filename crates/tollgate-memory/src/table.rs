//! The table: all keys and their states, in shards that are locked one by one.

use std::hash::{BuildHasher, Hasher};

use crossbeam_utils::CachePadded;
use smallvec::SmallVec;
use tollgate_core::{Batch, Check, Key, Op, Rule, State, Timestamp, Verdict, Verdicts};

use crate::entry::{Entry, Moment, halves};
use crate::pace::Pace;
use crate::population::Population;
use crate::shard::{Context, News, Shard};
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

    /// Whether the clerk should hear that a key is in use. Notes that it will.
    #[inline]
    pub(crate) fn is_stale(&self, entry: &mut Entry) -> bool {
        if !entry.resident {
            return false;
        }
        let epoch = self.population.epoch();
        let stale = entry.stamp != epoch && !entry.named;
        if stale {
            entry.stamp = epoch;
        }
        stale
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
        let hash = self.hash(&check.key);
        let mut shard = self.shard(hash).lock();
        let entry = (shard.entries).find_mut(hash, |entry| entry.is(&check.key))?;
        let State::Bucket(bucket) = &mut entry.state else {
            return None;
        };
        if now < bucket.updated {
            now = once_more(&clock);
        }
        let (kept, verdict) = rule.step(Some(*bucket), now, check.op);
        if let Some(kept) = kept {
            *bucket = kept;
            entry.pace = Pace::of_bucket(rule);
        }
        entry.mark(check.op, Moment::of_clock(now));
        Some((hash, now, verdict, self.is_stale(entry)))
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
        let verdict = match shard.entries.find_mut(hash, |entry| entry.is(&check.key)) {
            None => shard.judge_new(hash, check, moment, &mut context),
            Some(entry) => {
                let verdict = entry.step(check.policy.rule(), moment, check.op);
                if self.is_stale(entry) {
                    context.news.touched.push(hash);
                }
                verdict
            }
        };
        (moment, verdict, context.news)
    }

    /// Judges a batch as one: every shard that a key of it lies in is locked, in the order of the shards, before the
    /// clock is read.
    pub(crate) fn judge_many(
        &self,
        batch: &Batch<'_>,
        moment: impl FnOnce() -> Moment,
    ) -> (Moment, Verdicts, News) {
        let checks = batch.checks();
        let hashes: SmallVec<[u64; 4]> = checks.iter().map(|check| self.hash(&check.key)).collect();
        let mut indices: SmallVec<[usize; 4]> =
            hashes.iter().map(|hash| self.index(*hash)).collect();
        indices.sort_unstable();
        indices.dedup();
        let mut guards: SmallVec<[L::Guard<'_>; 4]> = indices
            .iter()
            .map(|index| self.shards[*index].lock())
            .collect();
        let shard_of = |hash: &u64| indices.partition_point(|index| *index < self.index(*hash));
        let moment = moment();
        let mut context = self.context();

        let mut known: SmallVec<[bool; 4]> = SmallVec::new();
        let mut states: SmallVec<[Option<State>; 4]> = SmallVec::new();
        for (check, hash) in checks.iter().zip(&hashes) {
            let shard = &mut *guards[shard_of(hash)];
            let entry = shard.entries.find_mut(*hash, |entry| entry.is(&check.key));
            known.push(entry.is_some());
            states.push(match entry {
                Some(entry) => Some(entry.take_state()),
                None => shard.origin(*hash, check, moment, &self.population).0,
            });
        }
        let before: SmallVec<[Option<State>; 4]> = checks
            .iter()
            .zip(&states)
            .map(|(check, state)| match check.op {
                Op::Settle(_) => state.clone(),
                Op::Hit(_) | Op::Peek(_) => None,
            })
            .collect();

        let verdicts = batch.step(&mut states, moment.judged);

        let admitted = checks
            .iter()
            .zip(verdicts.as_slice())
            .all(|(check, verdict)| !matches!(check.op, Op::Hit(_)) || verdict.is_allowed());
        let mut charged_new: SmallVec<[(usize, State); 4]> = SmallVec::new();
        for (place, state) in states.into_iter().enumerate() {
            let (check, hash) = (&checks[place], &hashes[place]);
            if known[place] {
                let entry = guards[shard_of(hash)]
                    .entries
                    .find_mut(*hash, |entry| entry.is(&check.key));
                if let Some(entry) = entry {
                    entry.put_state(state, check.policy.rule());
                    entry.mark(check.op, moment);
                    if self.is_stale(entry) {
                        context.news.touched.push(*hash);
                    }
                }
                continue;
            }
            let charged = match check.op {
                Op::Hit(_) => admitted,
                Op::Peek(_) => false,
                Op::Settle(_) => state != before[place],
            };
            if let Some(state) = state.filter(|_| charged) {
                charged_new.push((place, state));
            }
        }
        // Only now, because a new key may drive out another, and no state may be away then.
        for (place, state) in charged_new {
            let shard = &mut *guards[shard_of(&hashes[place])];
            (shard.overflow).take_back(halves(checks[place].key.digest()), hashes[place]);
            shard.insert(hashes[place], &checks[place], state, moment, &mut context);
        }
        (moment, verdicts, context.news)
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
        let hash_of = |entry: &Entry| self.hash_of(entry);
        (self.shard(hash).lock()).release(hash, for_capacity, moment, &self.population, hash_of)
    }

    /// Sweeps a part of the shard whose turn it is in this tick.
    pub(crate) fn sweep(&self, tick: u64, clock: Timestamp) {
        let shards = u64::try_from(self.shards.len()).unwrap_or(u64::MAX);
        let index = usize::try_from(tick % shards).unwrap_or(0);
        self.shards[index]
            .lock()
            .sweep_some(Moment::of_clock(clock), &self.population, |entry| {
                self.hash_of(entry)
            });
    }

    /// How many overflow cells there are.
    pub(crate) fn overflow_cells(&self) -> usize {
        self.shards
            .iter()
            .map(|shard| shard.lock().overflow.len())
            .sum()
    }

    fn context(&self) -> Context<'_, impl Fn(&Entry) -> u64> {
        Context {
            hash_of: |entry: &Entry| self.hash_of(entry),
            population: &self.population,
            news: News::default(),
        }
    }

    #[inline]
    pub(crate) fn hash(&self, key: &Key<'_>) -> u64 {
        self.hash_parts(halves(key.digest()), key.subject())
    }

    fn hash_of(&self, entry: &Entry) -> u64 {
        self.hash_parts(entry.digest(), entry.subject())
    }

    #[inline(always)]
    fn hash_parts(&self, digest: [u64; 2], subject: &[u8]) -> u64 {
        let mut hasher = self.hasher.build_hasher();
        hasher.write(subject);
        // Half a cryptographic hash tells spaces apart well enough here; equality looks at all of it.
        hasher.finish() ^ digest[0]
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

#[cfg(test)]
mod interleavings;
#[cfg(test)]
mod release;
