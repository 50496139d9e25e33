//! Batches: several keys of the table judged as one.

use std::hash::BuildHasher;

use smallvec::SmallVec;
use tollgate_core::{Batch, Op, State, Verdicts};

use super::Table;
use crate::entry::{Moment, halves};
use crate::shard::{News, Shard};
use crate::sync::Lock;

/// Room for the keys of an ordinary batch, without the heap.
type PerCheck<T> = SmallVec<[T; 4]>;

/// Where a check's key lies: its hash, and the place of its shard among the locked ones.
struct Place {
    hash: u64,
    shard: usize,
    /// For a settlement the state before it.
    before: Option<State>,
}

impl<H: BuildHasher, L: Lock<Shard>> Table<H, L> {
    /// Judges a batch as one: every shard that a key of it lies in is locked, in the order of the shards, before the
    /// clock is read.
    pub(crate) fn judge_many(
        &self,
        batch: &Batch<'_>,
        moment: impl FnOnce() -> Moment,
    ) -> (Moment, Verdicts, News) {
        let checks = batch.checks();
        let hashes: PerCheck<u64> = checks.iter().map(|check| self.hash(&check.key)).collect();
        let mut indices: PerCheck<usize> = hashes.iter().map(|hash| self.index(*hash)).collect();
        indices.sort_unstable();
        indices.dedup();
        let mut guards: PerCheck<L::Guard<'_>> = indices
            .iter()
            .map(|index| self.shards[*index].lock())
            .collect();
        let moment = moment();
        let mut context = self.context();

        let mut places: PerCheck<Place> = SmallVec::new();
        let mut states: PerCheck<Option<State>> = SmallVec::new();
        for (check, hash) in checks.iter().zip(hashes) {
            let shard = indices.partition_point(|index| *index < self.index(hash));
            let entry = guards[shard].find_mut(hash, &check.key);
            let state = match entry {
                Some((entry, _)) => Some(entry.take_state()),
                None => (guards[shard].origin(hash, check, moment, &self.population)).0,
            };
            let before = match check.op {
                Op::Settle(_) => state.clone(),
                Op::Hit(_) | Op::Peek(_) => None,
            };
            states.push(state);
            places.push(Place {
                hash,
                shard,
                before,
            });
        }

        let verdicts = batch.step(&mut states, moment.judged);

        let admitted = checks
            .iter()
            .zip(verdicts.as_slice())
            .all(|(check, verdict)| !matches!(check.op, Op::Hit(_)) || verdict.is_allowed());
        let mut charged_new: PerCheck<(usize, State)> = SmallVec::new();
        for (index, (place, state)) in places.iter().zip(states).enumerate() {
            let check = &checks[index];
            if let Some((entry, kinds)) = guards[place.shard].find_mut(place.hash, &check.key) {
                entry.put_state(state, check.policy.rule(), check.op, kinds);
                entry.mark(check.op, moment);
                if entry.is_stale(self.population.epoch()) {
                    context.news.touched.push(place.hash);
                }
                continue;
            }
            let charged = match check.op {
                Op::Hit(_) => admitted,
                Op::Peek(_) => false,
                Op::Settle(_) => state != place.before,
            };
            if let Some(state) = state.filter(|_| charged) {
                charged_new.push((index, state));
            }
        }
        // Only now, because a new key may drive out another, and no state may be away then.
        for (index, state) in charged_new {
            let (check, place) = (&checks[index], &places[index]);
            let shard = &mut *guards[place.shard];
            (shard.overflow).take_back(halves(check.key.digest()), place.hash);
            shard.insert(place.hash, check, state, moment, &mut context);
        }
        (moment, verdicts, context.news)
    }
}
