//! The hand that goes round over the keys of a shard, and takes out what may leave.

use crate::entry::{Entry, Moment};
use crate::population::Population;
use crate::shard::{Context, Shard, hash_of_entry};

impl Shard {
    /// Keys that one call hands to the clerk at most.
    const MAX_PROMOTIONS: usize = 4;
    /// Buckets that the hand passes for one new key at most.
    const MAX_STEPS: usize = 256;
    /// Buckets that the hand passes for one new key while there is room, so that nothing idle outlives many newcomers.
    const IDLE_STEPS: usize = 4;
    /// Buckets that the hand passes in one tick.
    const TICK_STEPS: usize = 4_096;

    /// Turns the hand for a key that is about to come.
    pub(crate) fn turn_the_hand<F: Fn(&[u8]) -> u64>(
        &mut self,
        moment: Moment,
        context: &mut Context<'_, F>,
    ) {
        if context.population.is_full() {
            self.make_room(moment, context);
        } else {
            self.sweep(Self::IDLE_STEPS, moment, context.population);
        }
    }

    /// Takes one key out, so that another has room: the first that the hand meets that is idle or was not hit again.
    ///
    /// Keys that were hit again go to the clerk, which decides about them from then on.
    fn make_room<F: Fn(&[u8]) -> u64>(&mut self, moment: Moment, context: &mut Context<'_, F>) {
        for _ in 0..self.entries.num_buckets().min(Self::MAX_STEPS) {
            let bucket = self.next_bucket();
            let Some(entry) = self.entries.get_bucket_mut(bucket) else {
                continue;
            };
            if entry.is_resident() {
                continue;
            }
            let kind = self.kinds.get(entry.kind());
            if entry.is_used() && entry.is_live(kind.pace, moment) {
                if entry.is_named() {
                    entry.give_another_chance();
                    continue;
                }
                if context.news.promoted.len() < Self::MAX_PROMOTIONS {
                    entry.make_resident(context.population.epoch());
                    let hash = hash_of_entry(entry, &self.kinds, &context.hash_subject);
                    let stays = entry.stays_for(kind.pace, moment.clock);
                    context.news.promoted.push((hash, stays));
                    continue;
                }
            }
            if let Ok(entry) = self.entries.get_bucket_entry(bucket) {
                let (entry, _) = entry.remove();
                let hash = hash_of_entry(&entry, &self.kinds, &context.hash_subject);
                self.bury(entry, hash, moment, context.population);
            }
            return;
        }
    }

    /// Counts a key that was taken out, and keeps what of its state still counts.
    fn bury(&mut self, entry: Entry, hash: u64, moment: Moment, population: &Population) {
        population.remove(1);
        let kind = self.kinds.get(entry.kind());
        if entry.is_live(kind.pace, moment) && !entry.is_forgiven() {
            population.count_evicted_live();
            let named = entry.is_named();
            (self.overflow).fold(kind, hash, entry.state, named, moment);
        }
    }

    /// Takes out what is idle among the next `steps` buckets, but for what the clerk decides about.
    fn sweep(&mut self, steps: usize, moment: Moment, population: &Population) {
        for _ in 0..steps.min(self.entries.num_buckets()) {
            let bucket = self.next_bucket();
            let idle = self.entries.get_bucket(bucket).is_some_and(|entry| {
                let pace = self.kinds.get(entry.kind()).pace;
                !entry.is_resident() && entry.is_idle(pace, moment.clock)
            });
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
        hash_subject: impl Fn(&[u8]) -> u64,
    ) {
        self.sweep(Self::TICK_STEPS, moment, population);
        if self.hand < Self::TICK_STEPS {
            // Once a round is enough.
            self.overflow.sweep(moment);
            self.tidy_kinds();
        }
        if self.entries.len() < self.entries.capacity() / 4 {
            let kinds = &*self.kinds;
            self.entries.shrink_to(self.entries.len() * 2, |entry| {
                hash_of_entry(entry, kinds, &hash_subject)
            });
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
        hash_subject: impl Fn(&[u8]) -> u64,
    ) -> Option<u64> {
        // Two keys of one hash are one to the clerk.
        while let Some(entry) = {
            let kinds = &*self.kinds;
            let leaves = |entry: &Entry| {
                entry.is_resident()
                    && hash_of_entry(entry, kinds, &hash_subject) == hash
                    && (for_capacity || entry.is_idle(kinds.get(entry.kind()).pace, moment.clock))
            };
            let found = self.entries.find_entry(hash, leaves).ok();
            found.map(|found| found.remove().0)
        } {
            self.bury(entry, hash, moment, population);
        }
        let kinds = &*self.kinds;
        self.entries
            .iter_hash(hash)
            .filter(|entry| {
                entry.is_resident() && hash_of_entry(entry, kinds, &hash_subject) == hash
            })
            .map(|entry| entry.stays_for(kinds.get(entry.kind()).pace, moment.clock))
            .max()
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
