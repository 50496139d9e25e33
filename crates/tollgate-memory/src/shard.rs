//! One part of the table: keys and their states, under one lock.

use hashbrown::HashTable;
use tollgate_core::{Check, Key, Op, State, Timestamp, Verdict};

use crate::entry::{Entry, Moment, halves};
use crate::kinds::{Kind, KindId, Kinds};
use crate::overflow::{Forgotten, Origin, Overflow};
use crate::pace::Pace;
use crate::population::Population;

/// One part of the table. Everything in it is under one lock.
#[derive(Debug)]
pub(crate) struct Shard {
    pub(crate) entries: HashTable<Entry>,
    /// The kind that was asked for last, and its number: most often it is asked for again.
    recent: (Kind, KindId),
    /// The next bucket that the hand looks at.
    pub(crate) hand: usize,
    pub(crate) kinds: Box<Kinds>,
    pub(crate) overflow: Box<Overflow>,
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

/// What a call needs besides the shard. `F` hashes a subject.
#[derive(Debug)]
pub(crate) struct Context<'a, F> {
    pub(crate) hash_subject: F,
    pub(crate) population: &'a Population,
    pub(crate) news: News,
}

/// The hash of a key, from that of its subject.
///
/// Half a cryptographic hash tells spaces apart well enough here; equality looks at all of it.
#[inline]
pub(crate) const fn hash_of_key(subject_hash: u64, digest: [u64; 2]) -> u64 {
    subject_hash ^ digest[0]
}

/// The hash of an entry's key.
pub(crate) fn hash_of_entry(
    entry: &Entry,
    kinds: &Kinds,
    hash_subject: impl Fn(&[u8]) -> u64,
) -> u64 {
    hash_of_key(
        hash_subject(entry.subject()),
        kinds.get(entry.kind()).digest,
    )
}

impl Shard {
    pub(crate) fn new(capacity: usize) -> Self {
        let mut kinds = Kinds::default();
        let none = Kind {
            digest: [0, 0],
            pace: Pace::default(),
        };
        Self {
            entries: HashTable::new(),
            recent: (none, kinds.intern(none)),
            hand: 0,
            kinds: Box::new(kinds),
            overflow: Box::new(Overflow::new(capacity)),
        }
    }

    /// The number of `kind`; `None` if no key is of that kind.
    #[inline]
    pub(crate) fn kind_id(&mut self, kind: Kind) -> Option<KindId> {
        if self.recent.0 == kind {
            return Some(self.recent.1);
        }
        self.look_up(kind)
    }

    #[cold]
    #[inline(never)]
    fn look_up(&mut self, kind: Kind) -> Option<KindId> {
        let id = self.kinds.find(kind)?;
        self.recent = (kind, id);
        Some(id)
    }

    /// Lets go of kinds that no key is of, if there may be many.
    pub(crate) fn tidy_kinds(&mut self) {
        if !self.kinds.has_grown() {
            return;
        }
        let in_use = self.entries.iter().map(Entry::kind);
        self.kinds
            .retain(in_use.chain(std::iter::once(self.recent.1)));
    }

    /// The entry of a key, whatever its pace.
    pub(crate) fn find_mut(
        &mut self,
        hash: u64,
        key: &Key<'_>,
    ) -> Option<(&mut Entry, &mut Kinds)> {
        let (digest, kinds) = (halves(key.digest()), &mut *self.kinds);
        let is = |entry: &Entry| {
            entry.is_subject(key.subject()) && kinds.get(entry.kind()).digest == digest
        };
        let entry = self.entries.find_mut(hash, is)?;
        Some((entry, kinds))
    }

    /// Judges a key that has no entry, and makes one if it was charged.
    pub(crate) fn judge_new<F: Fn(&[u8]) -> u64>(
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
    pub(crate) fn insert<F: Fn(&[u8]) -> u64>(
        &mut self,
        hash: u64,
        check: &Check<'_>,
        state: State,
        moment: Moment,
        context: &mut Context<'_, F>,
    ) {
        let kind = Kind {
            digest: halves(check.key.digest()),
            pace: Pace::of(check.policy.rule()),
        };
        let id = self.intern(kind);
        let entry = Entry::new(&check.key, state, id, moment);
        self.insert_entry(hash, entry, moment, context);
    }

    fn intern(&mut self, kind: Kind) -> KindId {
        match self.kind_id(kind) {
            Some(id) => id,
            None => self.kinds.intern(kind),
        }
    }

    fn insert_entry<F: Fn(&[u8]) -> u64>(
        &mut self,
        hash: u64,
        entry: Entry,
        moment: Moment,
        context: &mut Context<'_, F>,
    ) {
        self.turn_the_hand(moment, context);
        let kinds = &*self.kinds;
        self.entries.insert_unique(hash, entry, |entry| {
            hash_of_entry(entry, kinds, &context.hash_subject)
        });
        context.population.add(1);
    }

    /// Forgets a key. Returns whether there was anything to forget.
    pub(crate) fn reset<F: Fn(&[u8]) -> u64>(
        &mut self,
        hash: u64,
        key: &Key<'_>,
        clock: Timestamp,
        context: &mut Context<'_, F>,
    ) -> bool {
        let digest = halves(key.digest());
        let kinds = &*self.kinds;
        let is = |entry: &Entry| {
            entry.is_subject(key.subject()) && kinds.get(entry.kind()).digest == digest
        };
        let removed = match self.entries.find_entry(hash, is) {
            Ok(entry) => {
                let (entry, _) = entry.remove();
                context.population.remove(1);
                !entry.is_forgiven()
            }
            Err(_) => false,
        };
        let Forgotten { own, shared } = self.overflow.forget(digest, hash);
        if let Some((expiry, named)) = shared {
            let pace = Pace::default();
            let id = self.intern(Kind { digest, pace });
            let entry = Entry::forgiven(key, expiry, id, named, clock);
            self.insert_entry(hash, entry, Moment::of_clock(clock), context);
        }
        removed || own
    }
}
