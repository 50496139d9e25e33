//! The six algorithms as pure functions in integers: the specification every store is held against.
//!
//! Each family has a rule (the policy's numbers, worked out once) and a state (what a store keeps per key). A rule's
//! `step` takes a state, an instant and an [`Op`], and says what to keep and what the answer is. No clock is read here.

mod bucket;
mod fixed_window;
mod op;
mod sliding_log;
mod sliding_window;
mod state;
mod verdict;

pub use bucket::{BucketRule, BucketState};
pub use fixed_window::{FixedWindowRule, FixedWindowState};
pub use op::{Op, Settlement};
pub use sliding_log::{SlidingLogRule, SlidingLogState};
pub use sliding_window::{SlidingWindowRule, SlidingWindowState};
pub use state::State;
pub use verdict::Verdict;

use crate::time::Timestamp;

/// The largest number any state holds: the last one a double counts exactly. Debts beyond it are forgiven.
pub const MAX_STORED: u64 = (1 << 53) - 1;

/// How an algorithm counts.
///
/// | algorithm | admits | remembers per key |
/// |---|---|---|
/// | [`FixedWindow`](Self::FixedWindow) | `L` per window; twice that around a boundary | 2 numbers |
/// | [`SlidingWindow`](Self::SlidingWindow) | about `L` per period, assuming the last window's hits were spread evenly | 3 numbers |
/// | [`SlidingLog`](Self::SlidingLog) | never more than `L` in any window of one period | 2 numbers per hit |
/// | [`TokenBucket`](Self::TokenBucket) | `B` at once, `L` per period on average | 3 numbers |
/// | [`LeakyBucket`](Self::LeakyBucket) | the same, with a delay that spaces the hits evenly | 3 numbers |
/// | [`Gcra`](Self::Gcra) | hit for hit what the token bucket admits | 3 numbers |
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename_all = "kebab-case")
)]
pub enum Algorithm {
    /// A count that starts over with every window.
    FixedWindow,
    /// This window's count, plus the last one's as far as it still overlaps.
    SlidingWindow,
    /// Every hit, remembered for one period.
    SlidingLog,
    /// A bucket of `B` tokens, refilled at `L` per period.
    TokenBucket,
    /// A queue of `B` places that empties at `L` per period; an admitted hit is told how long to wait in it.
    LeakyBucket,
    /// The generic cell rate algorithm (ITU-T I.371): the token bucket told from its theoretical arrival time.
    Gcra,
}

impl Algorithm {
    /// All of them, in the order of the documentation.
    pub const ALL: [Self; 6] = [
        Self::FixedWindow,
        Self::SlidingWindow,
        Self::SlidingLog,
        Self::TokenBucket,
        Self::LeakyBucket,
        Self::Gcra,
    ];

    /// The name in text: `fixed-window`, `sliding-window`, `sliding-log`, `token-bucket`, `leaky-bucket` or `gcra`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::FixedWindow => "fixed-window",
            Self::SlidingWindow => "sliding-window",
            Self::SlidingLog => "sliding-log",
            Self::TokenBucket => "token-bucket",
            Self::LeakyBucket => "leaky-bucket",
            Self::Gcra => "gcra",
        }
    }

    /// Which kind of state the algorithm keeps.
    #[must_use]
    pub const fn family(self) -> Family {
        match self {
            Self::FixedWindow => Family::FixedWindow,
            Self::SlidingWindow => Family::SlidingWindow,
            Self::SlidingLog => Family::SlidingLog,
            Self::TokenBucket | Self::LeakyBucket | Self::Gcra => Family::Bucket,
        }
    }
}

impl std::fmt::Display for Algorithm {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
    }
}

impl std::str::FromStr for Algorithm {
    type Err = crate::Error;

    /// # Errors
    /// [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) for anything but the six names.
    fn from_str(text: &str) -> crate::Result<Self> {
        Self::ALL
            .into_iter()
            .find(|algorithm| algorithm.name() == text)
            .ok_or_else(|| {
                let names = Self::ALL.map(Self::name).join(", ");
                crate::Error::new(
                    crate::ErrorKind::InvalidInput,
                    format!("unknown algorithm {text:?}; expected one of {names}"),
                )
            })
    }
}

/// The kinds of state. Algorithms of one family read each other's state; keys of different families never meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Family {
    /// [`BucketState`].
    Bucket,
    /// [`FixedWindowState`].
    FixedWindow,
    /// [`SlidingWindowState`].
    SlidingWindow,
    /// [`SlidingLogState`].
    SlidingLog,
}

impl Family {
    /// The family and the version of its stored form, as it stands in keys.
    #[must_use]
    pub const fn tag(self) -> &'static str {
        match self {
            Self::Bucket => "b1",
            Self::FixedWindow => "f1",
            Self::SlidingWindow => "w1",
            Self::SlidingLog => "l1",
        }
    }
}

/// A policy's numbers, worked out once, by family.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rule {
    /// For `TokenBucket`, `LeakyBucket` and `Gcra`.
    Bucket(BucketRule),
    /// For `FixedWindow`.
    FixedWindow(FixedWindowRule),
    /// For `SlidingWindow`.
    SlidingWindow(SlidingWindowRule),
    /// For `SlidingLog`.
    SlidingLog(SlidingLogRule),
}

impl Rule {
    /// Judges `op` on `state` at `now`, and changes `state` where the algorithm says so.
    ///
    /// This is the specification of every store:
    /// - a peek changes nothing;
    /// - a denied hit charges nothing. Only where the stored time lies after `now` is it moved back to `now`, so that a
    ///   clock step locks nobody out for longer than a normal refill;
    /// - a state of another family counts as never seen.
    #[inline]
    pub fn step(&self, state: &mut Option<State>, now: Timestamp, op: Op) -> Verdict {
        match self {
            Self::Bucket(rule) => {
                let (kept, verdict) = rule.step(State::bucket(state.as_ref()), now, op);
                keep(state, kept.map(State::Bucket));
                verdict
            }
            Self::FixedWindow(rule) => {
                let (kept, verdict) = rule.step(State::fixed_window(state.as_ref()), now, op);
                keep(state, kept.map(State::FixedWindow));
                verdict
            }
            Self::SlidingWindow(rule) => {
                let (kept, verdict) = rule.step(State::sliding_window(state.as_ref()), now, op);
                keep(state, kept.map(State::SlidingWindow));
                verdict
            }
            Self::SlidingLog(rule) => match state {
                Some(State::SlidingLog(log)) => rule.step(log, now, op),
                _ => {
                    let mut log = SlidingLogState::default();
                    let verdict = rule.step(&mut log, now, op);
                    keep(
                        state,
                        log.newest().map(|_| State::SlidingLog(Box::new(log))),
                    );
                    verdict
                }
            },
        }
    }

    /// What a denied batch leaves of `state`: its time moved back to `now` if it lay after, nothing else.
    pub fn rewind(&self, state: &mut Option<State>, now: Timestamp) {
        let Some(stored) = state.as_ref().and_then(State::time) else {
            return;
        };
        if stored <= now {
            return;
        }
        match (self, state) {
            (Self::Bucket(rule), Some(State::Bucket(bucket))) => {
                *bucket = rule.at_level(rule.level_at(bucket, now), now);
            }
            (Self::FixedWindow(rule), Some(State::FixedWindow(window))) => {
                *window = rule.advance(*window, now).unwrap_or(*window);
            }
            (Self::SlidingWindow(rule), Some(State::SlidingWindow(windows))) => {
                *windows = rule.advance(*windows, now).unwrap_or(*windows);
            }
            (Self::SlidingLog(rule), Some(State::SlidingLog(log))) => rule.advance(log, now),
            _ => {}
        }
    }

    /// Microseconds from `now` until `state` is as good as never seen under this rule.
    ///
    /// From then on a store may drop it: nobody can tell.
    #[must_use]
    pub fn reset_after(&self, state: &State, now: Timestamp) -> u64 {
        match (self, state) {
            (Self::Bucket(rule), State::Bucket(bucket)) => {
                rule.reset_after(rule.level_at(bucket, now), now)
            }
            (Self::FixedWindow(rule), State::FixedWindow(window)) => rule
                .advance(*window, now)
                .map_or(0, |window| rule.window_left(window.start, now)),
            (Self::SlidingWindow(rule), State::SlidingWindow(windows)) => rule
                .advance(*windows, now)
                .map_or(0, |windows| rule.reset_after(&windows, now)),
            (Self::SlidingLog(rule), State::SlidingLog(log)) => rule.reset_after(log, now),
            _ => 0,
        }
    }

    /// Units that count against the capacity, rounded up: what a `verdict` at `at` has left is the rest.
    ///
    /// More than the capacity where a settlement has charged past it, or where the quota has become smaller.
    #[must_use]
    pub fn used(&self, verdict: &Verdict, at: Timestamp) -> u64 {
        match self {
            Self::Bucket(rule) => verdict.level().div_ceil(rule.unit()),
            Self::FixedWindow(_) | Self::SlidingLog(_) => verdict.count(),
            Self::SlidingWindow(rule) => rule.estimate(&verdict.windows(), at),
        }
    }

    /// The state that a hit judged at `at` has left behind, as its `verdict` tells; `None` for a key as good as new.
    ///
    /// From `at` on it is answered as the state in the store is, if nobody else charges or settles. Of a sliding log
    /// it is always `None`: a verdict does not tell when each of its hits was made.
    #[must_use]
    pub fn state_behind(&self, verdict: &Verdict, at: Timestamp) -> Option<State> {
        match self {
            Self::Bucket(rule) => Some(State::Bucket(rule.at_level(verdict.level(), at))),
            Self::FixedWindow(_) => {
                let (start, count) = (verdict.window_start()?, verdict.count());
                Some(State::FixedWindow(FixedWindowState { start, count }))
            }
            Self::SlidingWindow(_) => Some(State::SlidingWindow(verdict.windows())),
            Self::SlidingLog(_) => None,
        }
    }

    /// The most one hit can ever take: a higher cost is denied as *never*.
    #[must_use]
    pub const fn capacity(&self) -> u64 {
        match self {
            Self::Bucket(rule) => rule.capacity(),
            Self::FixedWindow(rule) => rule.limit(),
            Self::SlidingWindow(rule) => rule.limit(),
            Self::SlidingLog(rule) => rule.limit(),
        }
    }
}

#[inline]
fn keep(state: &mut Option<State>, kept: Option<State>) {
    if kept.is_some() {
        *state = kept;
    }
}
