//! What capacity evicted while it was still live: kept in a bounded number of shared cells.
//!
//! A cell holds the state of one evicted key, or the stricter of several. A key that is not in the table goes on from
//! its cell. While a cell stands for one key only, nobody else is affected and the key goes on exactly; once several
//! share it, whoever lands there may be one of them and goes on from what they share.

use hashbrown::HashTable;
use tollgate_core::{Rule, State};

use crate::entry::{Moment, is_live};
use crate::kinds::Kind;
use crate::pace::Pace;
use crate::stricter::{handed_on, stricter};

/// The cells of one shard.
#[derive(Debug)]
pub(crate) struct Overflow {
    cells: HashTable<Cell>,
    /// Cells of one space, less one: a mask.
    slots: u32,
    /// Cells of all spaces; beyond it a space has a single one.
    limit: usize,
    /// How many spaces have a cell for all of their keys.
    whole_spaces: usize,
    /// Folds since expired cells were last thrown out.
    folds: usize,
}

#[derive(Debug)]
struct Cell {
    digest: [u64; 2],
    slot: u32,
    /// The hash of the only key the cell stands for; `None` if there are several.
    owner: Option<u64>,
    state: State,
    pace: Pace,
    named: bool,
}

/// The slot of the cell for all keys of a space.
const WHOLE_SPACE: u32 = u32::MAX;

/// How a key without an entry begins.
#[derive(Debug)]
pub(crate) enum Origin {
    /// As never seen.
    New,
    /// Where it was when it was evicted.
    Returned(State),
    /// With what it may share with others.
    Shared(State),
}

/// What a reset found.
#[derive(Debug, Default)]
pub(crate) struct Forgotten {
    /// The key had a cell of its own.
    pub(crate) own: bool,
    /// The key may be one of those in a shared cell: until when, and whether at named instants.
    pub(crate) shared: Option<(u64, bool)>,
}

impl Overflow {
    /// Cells beside a part of the table that holds `capacity` keys.
    pub(crate) fn new(capacity: usize) -> Self {
        let slots = (capacity / 4).next_power_of_two().max(4);
        Self {
            cells: HashTable::new(),
            slots: u32::try_from(slots - 1).unwrap_or(u32::MAX >> 1),
            limit: 2 * slots,
            whole_spaces: 0,
            folds: 0,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.cells.len()
    }

    /// Keeps the state of a key of `kind` that goes before its time.
    #[cold]
    pub(crate) fn fold(
        &mut self,
        kind: Kind,
        hash: u64,
        state: State,
        named: bool,
        moment: Moment,
    ) {
        self.folds += 1;
        let digest = kind.digest;
        let slot = self.slot(hash);
        let evicted = (state, kind.pace);
        if let Some(cell) = self.find_mut(digest, slot) {
            cell.add(evicted, named, hash, moment);
            return;
        }
        if self.cells.len() >= self.limit {
            self.make_room(moment);
        }
        if self.cells.len() < self.limit {
            self.insert(Cell::new(digest, slot, Some(hash), evicted, named));
            return;
        }
        if let Some(cell) = self.find_mut(digest, WHOLE_SPACE) {
            cell.add(evicted, named, hash, moment);
            return;
        }
        self.whole_spaces += 1;
        self.insert(Cell::new(digest, WHOLE_SPACE, None, evicted, named));
    }

    /// How the key of `digest` and `hash` begins.
    ///
    /// Where `moves_back`, a cell from a later time than now is moved back to now, as the rule would do with a state in
    /// the table: a step of the clock locks nobody out for longer than a normal refill.
    pub(crate) fn origin(
        &mut self,
        digest: [u64; 2],
        hash: u64,
        rule: &Rule,
        moment: Moment,
        moves_back: bool,
    ) -> Origin {
        if self.cells.is_empty() {
            return Origin::New;
        }
        let slots = self.slots_of(hash);
        let mut found: Option<(State, Pace)> = None;
        for slot in slots.into_iter().flatten() {
            let Some(cell) = self.find_mut(digest, slot) else {
                continue;
            };
            if cell.owner.is_some_and(|owner| owner != hash) || !cell.is_live(moment) {
                continue;
            }
            if moves_back {
                cell.move_back(rule, moment);
            }
            if cell.owner.is_some() && slots[1].is_none() {
                return Origin::Returned(cell.state.clone());
            }
            let state = cell.state.clone();
            found = Some(match found {
                None => (state, cell.pace),
                Some(other) => stricter(other, (state, cell.pace), moment.judged),
            });
        }
        found.map_or(Origin::New, |(state, _)| {
            Origin::Shared(handed_on(&state, rule, moment.judged))
        })
    }

    /// Drops the cell that stands for this key alone: it is in the table again.
    pub(crate) fn take_back(&mut self, digest: [u64; 2], hash: u64) -> bool {
        let slot = self.slot(hash);
        let own = |cell: &Cell| cell.is(digest, slot) && cell.owner == Some(hash);
        match self.cells.find_entry(Cell::hash(digest, slot), own) {
            Ok(cell) => {
                cell.remove();
                true
            }
            Err(_) => false,
        }
    }

    /// Forgets a key as far as it can be told from others.
    pub(crate) fn forget(&mut self, digest: [u64; 2], hash: u64) -> Forgotten {
        if self.cells.is_empty() {
            return Forgotten::default();
        }
        let own = self.take_back(digest, hash);
        let shared = (self.slots_of(hash).into_iter().flatten())
            .filter_map(|slot| self.find(digest, slot))
            .filter(|cell| cell.owner.is_none())
            .map(|cell| (cell.expiry(), cell.named))
            .max();
        Forgotten { own, shared }
    }

    /// Throws out what has expired by the store's clock.
    pub(crate) fn sweep(&mut self, moment: Moment) {
        if self.cells.is_empty() {
            return;
        }
        self.folds = 0;
        self.cells.retain(|cell| cell.is_live(moment));
        self.whole_spaces = (self.cells.iter())
            .filter(|cell| cell.slot == WHOLE_SPACE)
            .count();
        if self.cells.len() < self.cells.capacity() / 4 {
            self.cells.shrink_to(self.cells.len() * 2, Cell::own_hash);
        }
    }

    /// Sweeps if enough was folded since the last time to pay for it.
    fn make_room(&mut self, moment: Moment) {
        if self.folds >= self.limit {
            self.sweep(moment);
        }
    }

    fn slot(&self, hash: u64) -> u32 {
        // The bits that neither the shard, nor the table's buckets and tags are chosen by.
        u32::try_from(hash >> 16 & u64::from(self.slots)).unwrap_or(0)
    }

    /// Where a key's state may lie: in its own slot, and in its space's single one if there is any.
    fn slots_of(&self, hash: u64) -> [Option<u32>; 2] {
        let whole = (self.whole_spaces > 0).then_some(WHOLE_SPACE);
        [Some(self.slot(hash)), whole]
    }

    fn find(&self, digest: [u64; 2], slot: u32) -> Option<&Cell> {
        self.cells
            .find(Cell::hash(digest, slot), |cell| cell.is(digest, slot))
    }

    fn find_mut(&mut self, digest: [u64; 2], slot: u32) -> Option<&mut Cell> {
        self.cells
            .find_mut(Cell::hash(digest, slot), |cell| cell.is(digest, slot))
    }

    fn insert(&mut self, cell: Cell) {
        self.cells
            .insert_unique(cell.own_hash(), cell, Cell::own_hash);
    }
}

impl Cell {
    fn new(
        digest: [u64; 2],
        slot: u32,
        owner: Option<u64>,
        (state, pace): (State, Pace),
        named: bool,
    ) -> Self {
        Self {
            digest,
            slot,
            owner,
            state,
            pace,
            named,
        }
    }

    fn is(&self, digest: [u64; 2], slot: u32) -> bool {
        self.slot == slot && self.digest == digest
    }

    /// The digest is a cryptographic hash already; the slot comes from a seeded one.
    fn hash(digest: [u64; 2], slot: u32) -> u64 {
        (digest[0] ^ u64::from(slot)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }

    fn own_hash(&self) -> u64 {
        Self::hash(self.digest, self.slot)
    }

    fn expiry(&self) -> u64 {
        self.pace.expiry(&self.state)
    }

    fn is_live(&self, moment: Moment) -> bool {
        is_live(&self.state, self.pace, self.named, moment)
    }

    /// Makes the cell stand for one more key.
    fn add(&mut self, evicted: (State, Pace), named: bool, hash: u64, moment: Moment) {
        if self.is_live(moment) && self.owner != Some(hash) {
            let held = (self.state.clone(), self.pace);
            (self.state, self.pace) = stricter(held, evicted, moment.judged);
            self.owner = None;
        } else {
            (self.state, self.pace) = evicted;
            self.owner = (self.slot != WHOLE_SPACE).then_some(hash);
        }
        self.named = named;
    }

    fn move_back(&mut self, rule: &Rule, moment: Moment) {
        if self.named != moment.named || self.state.time() <= Some(moment.judged) {
            return;
        }
        if let State::Bucket(bucket) = &mut self.state {
            // In the weights it has: they may be those of another quota, which the pace belongs to.
            bucket.updated = moment.judged;
            return;
        }
        let mut state = Some(self.state.clone());
        rule.rewind(&mut state, moment.judged);
        if let Some(state) = state {
            self.state = state;
        }
    }
}
