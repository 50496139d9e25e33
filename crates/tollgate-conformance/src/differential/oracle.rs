//! Core's own answers to a sequence, and what a store is free to have forgotten.

use tollgate_core::{Batch, State, Timestamp, Verdicts};

use crate::differential::sequence::{Ask, Slot};

/// The states that core's specification keeps for the slots of a sequence.
#[derive(Debug)]
pub(crate) struct Oracle {
    kept: Vec<Kept>,
}

#[derive(Clone, Debug, Default)]
struct Kept {
    state: Option<State>,
    /// The policy by which the state was last written.
    policy: usize,
    /// From then on the state was as good as never seen, by that policy: a store may have dropped it.
    droppable_from: u64,
    /// The latest instant that anything was judged at since.
    latest: u64,
}

impl Oracle {
    pub(crate) fn new(slots: usize) -> Self {
        Self {
            kept: vec![Kept::default(); slots],
        }
    }

    /// Whether core's answer depends on a state that a store may have dropped at some earlier instant.
    ///
    /// It does when time has gone back to where that state still counted, or when another policy finds it still
    /// counting. Nobody promises either, so the key is forgotten first.
    pub(crate) fn may_have_been_dropped(&self, ask: &Ask, at: Timestamp) -> bool {
        let kept = &self.kept[ask.slot];
        let now = at.as_micros();
        kept.state.is_some()
            && kept.latest.max(now) >= kept.droppable_from
            && (now < kept.droppable_from || ask.policy != kept.policy)
    }

    pub(crate) fn forget(&mut self, slot: usize) {
        self.kept[slot] = Kept::default();
    }

    /// How many keys a reset of `slots` may find: at least those that still count, at most those that ever did.
    pub(crate) fn reset(&mut self, slots: &[usize]) -> (u64, u64) {
        let (mut least, mut most) = (0, 0);
        for slot in slots {
            let kept = std::mem::take(&mut self.kept[*slot]);
            most += u64::from(kept.state.is_some());
            least += u64::from(kept.state.is_some() && kept.latest < kept.droppable_from);
        }
        (least, most)
    }

    /// Core's verdicts on `batch`, whose checks are `asks`.
    pub(crate) fn judge(
        &mut self,
        slots: &[Slot],
        batch: &Batch<'_>,
        asks: &[Ask],
        at: Timestamp,
    ) -> Verdicts {
        let before: Vec<Option<State>> = asks
            .iter()
            .map(|ask| self.kept[ask.slot].state.clone())
            .collect();
        let mut after = before.clone();
        let verdicts = batch.step(&mut after, at);
        for kept in &mut self.kept {
            kept.latest = kept.latest.max(at.as_micros());
        }
        for ((ask, before), after) in asks.iter().zip(before).zip(after) {
            if before == after {
                continue;
            }
            let rule = slots[ask.slot].policies[ask.policy].rule();
            let lives = after
                .as_ref()
                .map_or(0, |state| rule.reset_after(state, at));
            self.kept[ask.slot] = Kept {
                state: after,
                policy: ask.policy,
                droppable_from: at.as_micros().saturating_add(lives),
                latest: at.as_micros(),
            };
        }
        verdicts
    }
}
