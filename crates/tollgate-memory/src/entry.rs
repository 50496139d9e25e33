//! One key and its state, as they lie in the table.

use smallvec::SmallVec;
use tollgate_core::algorithm::FixedWindowState;
use tollgate_core::{Key, Op, Rule, State, Timestamp, Verdict};

use crate::kinds::{Kind, KindId, Kinds};
use crate::pace::Pace;

/// When a call is judged.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    /// The instant the call is judged at.
    pub(crate) judged: Timestamp,
    /// The store's own clock.
    pub(crate) clock: Timestamp,
    /// Whether the caller named the instant. Then it says nothing about the store's clock, nor the other way round.
    pub(crate) named: bool,
}

impl Moment {
    /// A moment by the store's own clock.
    #[inline]
    pub(crate) const fn of_clock(now: Timestamp) -> Self {
        Self {
            judged: now,
            clock: now,
            named: false,
        }
    }

    /// A moment that the caller named.
    pub(crate) const fn named(at: Timestamp, clock: Timestamp) -> Self {
        Self {
            judged: at,
            clock,
            named: true,
        }
    }
}

/// A subject's bytes; short ones lie inside.
pub(crate) type Subject = SmallVec<[u8; 16]>;

/// A key and its state, in one cache line.
#[derive(Debug)]
#[repr(align(64))]
pub(crate) struct Entry {
    pub(crate) state: State,
    subject: Subject,
    /// What it has in common with other keys of the shard.
    kind: KindId,
    /// For a resident the epoch in which the clerk last heard of it; for a key judged at named instants the store's
    /// clock then, in [`COARSE`] units.
    stamp: u16,
    marks: u8,
}

const _: () = assert!(size_of::<Entry>() == 64, "an entry fills one cache line");

/// It was hit again since the hand last passed.
const USED: u8 = 1;
/// The clerk decides when it leaves.
const RESIDENT: u8 = 1 << 1;
/// Its state was last judged at a named instant.
const NAMED: u8 = 1 << 2;
/// It stands for a key that was reset and not charged since: it only keeps the overflow away.
const FORGIVEN: u8 = 1 << 3;

/// How long a state that was judged at a named instant stays at least, since the clock knows nothing of that instant.
const NAMED_FLOOR: u64 = 60_000_000;

/// How long a key stays after its state is as good as never seen, so that one that is hit every few seconds under a
/// fast limit does not come and go.
const GRACE: u64 = 10_000_000;

/// 2^26 microseconds, about a minute: the unit of a coarse stamp.
const COARSE: u32 = 26;
/// The longest that a coarse stamp tells apart from a clock that was set back: 25 days.
const COARSE_RANGE: u16 = u16::MAX / 2;

pub(crate) const fn halves(digest: u128) -> [u64; 2] {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the two halves make up the whole"
    )]
    [digest as u64, (digest >> 64) as u64]
}

impl Entry {
    pub(crate) fn new(key: &Key<'_>, state: State, kind: KindId, moment: Moment) -> Self {
        let mut entry = Self {
            state,
            subject: SmallVec::from_slice(key.subject()),
            kind,
            stamp: 0,
            marks: 0,
        };
        entry.mark_clock(moment);
        entry
    }

    /// An entry that says a key was reset, until `expiry`. Its kind is of the default pace.
    pub(crate) fn forgiven(
        key: &Key<'_>,
        expiry: u64,
        kind: KindId,
        named: bool,
        clock: Timestamp,
    ) -> Self {
        let state = Pace::no_state(key.space().family(), expiry);
        let moment = Moment {
            judged: clock,
            clock,
            named,
        };
        let mut entry = Self::new(key, state, kind, moment);
        entry.marks |= FORGIVEN;
        entry
    }

    /// Whether it is the entry of `key`, given the number of the key's kind.
    #[inline]
    pub(crate) fn is(&self, kind: KindId, subject: &[u8]) -> bool {
        self.kind == kind && same_bytes(&self.subject, subject)
    }

    pub(crate) fn is_subject(&self, subject: &[u8]) -> bool {
        same_bytes(&self.subject, subject)
    }

    pub(crate) const fn kind(&self) -> KindId {
        self.kind
    }

    pub(crate) fn subject(&self) -> &[u8] {
        &self.subject
    }

    pub(crate) const fn is_used(&self) -> bool {
        self.marks & USED != 0
    }

    #[inline]
    pub(crate) const fn is_resident(&self) -> bool {
        self.marks & RESIDENT != 0
    }

    pub(crate) const fn is_named(&self) -> bool {
        self.marks & NAMED != 0
    }

    pub(crate) const fn is_forgiven(&self) -> bool {
        self.marks & FORGIVEN != 0
    }

    /// Has it pass the hand once more before it may leave.
    pub(crate) const fn give_another_chance(&mut self) {
        self.marks &= !USED;
    }

    /// Leaves it to the clerk.
    pub(crate) const fn make_resident(&mut self, epoch: u16) {
        self.marks |= RESIDENT;
        self.stamp = epoch;
    }

    #[cfg(test)]
    pub(crate) const fn leave_to_the_hand(&mut self) {
        self.marks &= !RESIDENT;
    }

    /// Notes a hit by the store's own clock. Returns whether the clerk should hear that the key is in use.
    #[inline]
    pub(crate) fn note_hit(&mut self, epoch: impl FnOnce() -> u16) -> bool {
        // Most often there is nothing new to note.
        if self.marks == USED {
            return false;
        }
        self.marks = self.marks & !NAMED | USED;
        self.is_stale(epoch())
    }

    /// Whether the clerk should hear that it is in use. Notes that it will.
    pub(crate) const fn is_stale(&mut self, epoch: u16) -> bool {
        let stale = self.marks & (RESIDENT | NAMED) == RESIDENT && self.stamp != epoch;
        if stale {
            self.stamp = epoch;
        }
        stale
    }

    /// Judges `op` by `rule`, and keeps what it leaves.
    pub(crate) fn step(
        &mut self,
        rule: &Rule,
        moment: Moment,
        op: Op,
        kinds: &mut Kinds,
    ) -> Verdict {
        let mut state = Some(self.take_state());
        let verdict = rule.step(&mut state, moment.judged, op);
        self.put_state(state, rule, op, kinds);
        self.mark(op, moment);
        verdict
    }

    /// Takes the state out for a while. Whoever takes it puts it back before the shard is unlocked.
    pub(crate) fn take_state(&mut self) -> State {
        std::mem::replace(&mut self.state, NOTHING)
    }

    /// Puts back what `op` left of the state under `rule`, which it fades by from now on unless it was only looked at.
    pub(crate) fn put_state(
        &mut self,
        state: Option<State>,
        rule: &Rule,
        op: Op,
        kinds: &mut Kinds,
    ) {
        let Some(state) = state else { return };
        if Pace::fits(rule, &state) && !matches!(op, Op::Peek(_)) {
            let kind = kinds.get(self.kind);
            let pace = Pace::of(rule);
            if kind.pace != pace {
                self.kind = kinds.intern(Kind { pace, ..kind });
            }
            self.marks &= !FORGIVEN;
        }
        self.state = state;
    }

    /// Notes that a hit or a settlement was judged, and by which clock.
    #[inline]
    pub(crate) fn mark(&mut self, op: Op, moment: Moment) {
        if matches!(op, Op::Peek(_)) {
            return;
        }
        self.marks |= USED;
        self.mark_clock(moment);
    }

    #[inline]
    fn mark_clock(&mut self, moment: Moment) {
        if moment.named {
            self.marks |= NAMED;
            self.stamp = coarse(moment.clock);
        } else {
            self.marks &= !NAMED;
        }
    }

    /// How many microseconds from `clock` on it stays at least; none if it may go because its time is over.
    pub(crate) fn stays_for(&self, pace: Pace, clock: Timestamp) -> u64 {
        if !self.is_named() {
            let leaves = pace.expiry(&self.state).saturating_add(GRACE);
            return leaves.saturating_sub(clock.as_micros());
        }
        let passed = coarse(clock).wrapping_sub(self.stamp);
        // A clock that was set back has not passed the stamp yet.
        let passed = if passed > COARSE_RANGE { 0 } else { passed };
        let floor = pace.lifetime(&self.state).max(NAMED_FLOOR);
        // One unit more, because both readings were cut off.
        let stays = floor.min(u64::from(COARSE_RANGE - 1) << COARSE) + (1 << COARSE);
        stays.saturating_sub(u64::from(passed) << COARSE)
    }

    /// Whether it may go because its time is over, as the store's clock has it.
    pub(crate) fn is_idle(&self, pace: Pace, clock: Timestamp) -> bool {
        self.stays_for(pace, clock) == 0
    }

    /// Whether the state still counts at `moment`, as far as its clock can tell.
    pub(crate) fn is_live(&self, pace: Pace, moment: Moment) -> bool {
        is_live(&self.state, pace, self.is_named(), moment)
    }
}

/// Whether a state still counts at `moment`. Where the clocks are not the same, nobody can say it does not.
pub(crate) fn is_live(state: &State, pace: Pace, named: bool, moment: Moment) -> bool {
    named != moment.named || pace.counts_at(state, moment.judged.as_micros())
}

/// What lies in an entry while its state is taken out.
const NOTHING: State = State::FixedWindow(FixedWindowState {
    start: Timestamp::EPOCH,
    count: 0,
});

/// Equality, where most subjects have 8 to 16 bytes: those are two numbers, and need no call.
#[inline]
fn same_bytes(a: &[u8], b: &[u8]) -> bool {
    if a.len() != b.len() {
        return false;
    }
    if a.len() > 16 {
        return a == b;
    }
    match a.len().checked_sub(8) {
        Some(tail) => a[..8] == b[..8] && a[tail..] == b[tail..],
        None => a == b,
    }
}

fn coarse(clock: Timestamp) -> u16 {
    // Only differences count, so the bits above may go.
    u16::try_from((clock.as_micros() >> COARSE) & u64::from(u16::MAX)).unwrap_or(0)
}
