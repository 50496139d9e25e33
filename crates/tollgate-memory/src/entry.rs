//! One key and its state, as they lie in the table.

use smallvec::SmallVec;
use tollgate_core::algorithm::FixedWindowState;
use tollgate_core::{Key, Op, Rule, State, Timestamp, Verdict};

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

/// A key and its state.
#[derive(Debug)]
pub(crate) struct Entry {
    /// The two halves of [`Key::digest`]; as one number they would be aligned to 16 bytes.
    digest: [u64; 2],
    subject: Subject,
    pub(crate) state: State,
    pub(crate) pace: Pace,
    /// For a resident the epoch in which the clerk last heard of it; for a key judged at named instants the store's
    /// clock then, in [`COARSE`] units.
    pub(crate) stamp: u32,
    /// Whether it was hit again since the hand last passed.
    pub(crate) used: bool,
    /// Whether the clerk decides when it leaves.
    pub(crate) resident: bool,
    /// Whether its state was last judged at a named instant.
    pub(crate) named: bool,
    /// Whether it stands for a key that was reset and not charged since: it only keeps the overflow away.
    pub(crate) forgiven: bool,
}

/// How long a state that was judged at a named instant stays at least, since the clock knows nothing of that instant.
const NAMED_FLOOR: u64 = 60_000_000;

/// How long a key stays after its state is as good as never seen, so that one that is hit every few seconds under a
/// fast limit does not come and go.
const GRACE: u64 = 10_000_000;

/// 2^20 microseconds, about a second: the unit of a coarse stamp.
const COARSE: u32 = 20;

pub(crate) const fn halves(digest: u128) -> [u64; 2] {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the two halves make up the whole"
    )]
    [digest as u64, (digest >> 64) as u64]
}

impl Entry {
    pub(crate) fn new(key: &Key<'_>, state: State, pace: Pace, moment: Moment) -> Self {
        let mut entry = Self {
            digest: halves(key.digest()),
            subject: SmallVec::from_slice(key.subject()),
            state,
            pace,
            stamp: 0,
            used: false,
            resident: false,
            named: false,
            forgiven: false,
        };
        entry.mark_clock(moment);
        entry
    }

    /// An entry that says a key was reset, until `expiry`.
    pub(crate) fn forgiven(key: &Key<'_>, expiry: u64, named: bool, clock: Timestamp) -> Self {
        let (state, pace) = Pace::no_state(key.space().family(), expiry);
        let moment = Moment {
            judged: clock,
            clock,
            named,
        };
        Self {
            forgiven: true,
            ..Self::new(key, state, pace, moment)
        }
    }

    #[inline]
    pub(crate) fn is(&self, key: &Key<'_>) -> bool {
        self.digest == halves(key.digest()) && same_bytes(&self.subject, key.subject())
    }

    pub(crate) const fn digest(&self) -> [u64; 2] {
        self.digest
    }

    pub(crate) fn subject(&self) -> &[u8] {
        &self.subject
    }

    /// Judges `op` by `rule`, and keeps what it leaves.
    pub(crate) fn step(&mut self, rule: &Rule, moment: Moment, op: Op) -> Verdict {
        let mut state = Some(self.take_state());
        let verdict = rule.step(&mut state, moment.judged, op);
        self.put_state(state, rule);
        self.mark(op, moment);
        verdict
    }

    /// Takes the state out for a while. Whoever takes it puts it back before the shard is unlocked.
    pub(crate) fn take_state(&mut self) -> State {
        std::mem::replace(&mut self.state, NOTHING)
    }

    pub(crate) fn put_state(&mut self, state: Option<State>, rule: &Rule) {
        let Some(state) = state else { return };
        if Pace::fits(rule, &state) {
            self.pace = Pace::of(rule);
            self.forgiven = false;
        }
        self.state = state;
    }

    /// Notes that a hit or a settlement was judged, and by which clock.
    #[inline]
    pub(crate) fn mark(&mut self, op: Op, moment: Moment) {
        if matches!(op, Op::Peek(_)) {
            return;
        }
        self.used = true;
        self.mark_clock(moment);
    }

    #[inline]
    fn mark_clock(&mut self, moment: Moment) {
        self.named = moment.named;
        if moment.named {
            self.stamp = coarse(moment.clock);
        }
    }

    pub(crate) fn expiry(&self) -> u64 {
        self.pace.expiry(&self.state)
    }

    /// How many microseconds from `clock` on it stays at least; none if it may go because its time is over.
    pub(crate) fn stays_for(&self, clock: Timestamp) -> u64 {
        if !self.named {
            let leaves = self.expiry().saturating_add(GRACE);
            return leaves.saturating_sub(clock.as_micros());
        }
        let seen = u64::from(coarse(clock).wrapping_sub(self.stamp));
        // A clock that was set back has not passed the stamp yet.
        let passed = if seen > u64::from(u32::MAX / 2) {
            0
        } else {
            seen << COARSE
        };
        let floor = self.pace.lifetime(&self.state).max(NAMED_FLOOR);
        // One unit more, because both readings were cut off.
        (floor + (1 << COARSE)).saturating_sub(passed)
    }

    /// Whether it may go because its time is over, as the store's clock has it.
    pub(crate) fn is_idle(&self, clock: Timestamp) -> bool {
        self.stays_for(clock) == 0
    }

    /// Whether the state still counts at `moment`, as far as its clock can tell.
    pub(crate) fn is_live(&self, moment: Moment) -> bool {
        is_live(&self.state, self.pace, self.named, moment)
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
    match (
        (a.first_chunk::<8>(), a.last_chunk::<8>()),
        (b.first_chunk::<8>(), b.last_chunk::<8>()),
    ) {
        ((Some(a_first), Some(a_last)), (Some(b_first), Some(b_last))) => {
            a_first == b_first && a_last == b_last
        }
        _ => a == b,
    }
}

fn coarse(clock: Timestamp) -> u32 {
    // Only differences count, so the bits above may go.
    u32::try_from((clock.as_micros() >> COARSE) & u64::from(u32::MAX)).unwrap_or(0)
}
