//! How fast a state fades: the part of a rule that the table needs when no policy is at hand.

use tollgate_core::algorithm::{BucketRule, BucketState, FixedWindowState};
use tollgate_core::{Family, Rule, State, Timestamp};

/// How fast the states of one rule fade.
///
/// Kept beside each state, because eviction meets keys whose policies are not part of the call that evicts. For a
/// bucket it is the drain (below 2^40, since a limit is at most 10^12) and the tick (at most 10^6 microseconds); for
/// the others it is the period.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pace(u64);

const TICK_SHIFT: u32 = 40;

impl Pace {
    pub(crate) const fn of(rule: &Rule) -> Self {
        match rule {
            Rule::Bucket(rule) => Self::of_bucket(rule),
            Rule::FixedWindow(rule) => Self(rule.period()),
            Rule::SlidingWindow(rule) => Self(rule.period()),
            Rule::SlidingLog(rule) => Self(rule.period()),
        }
    }

    /// Whether `state` is of the kind that `rule` reads; any other counts as never seen.
    pub(crate) const fn fits(rule: &Rule, state: &State) -> bool {
        matches!(
            (rule, state),
            (Rule::Bucket(_), State::Bucket(_))
                | (Rule::FixedWindow(_), State::FixedWindow(_))
                | (Rule::SlidingWindow(_), State::SlidingWindow(_))
                | (Rule::SlidingLog(_), State::SlidingLog(_))
        )
    }

    /// A state that rules of `family` take for none, and that at the default pace expires at `expiry` all the same.
    pub(crate) const fn no_state(family: Family, expiry: u64) -> State {
        let instant = Timestamp::saturating_from_micros(expiry);
        match family {
            Family::FixedWindow => State::Bucket(BucketState {
                updated: instant,
                level: 0,
                unit: 1,
            }),
            Family::Bucket | Family::SlidingWindow | Family::SlidingLog => {
                State::FixedWindow(FixedWindowState {
                    start: instant,
                    count: 0,
                })
            }
        }
    }

    pub(crate) const fn bits(self) -> u64 {
        self.0
    }

    #[inline]
    pub(crate) const fn of_bucket(rule: &BucketRule) -> Self {
        Self(rule.drain() | rule.tick() << TICK_SHIFT)
    }

    const fn drain(self) -> u64 {
        self.0 & ((1 << TICK_SHIFT) - 1)
    }

    const fn tick(self) -> u64 {
        self.0 >> TICK_SHIFT
    }

    /// Microseconds in one period of a window or a log.
    pub(crate) const fn period(self) -> u64 {
        self.0
    }

    /// The instant, in microseconds since the epoch, from which `state` is certainly as good as never seen.
    ///
    /// A bucket that never drains belongs to a limit of zero, which is blocked whatever it holds.
    pub(crate) fn expiry(self, state: &State) -> u64 {
        match state {
            State::Bucket(bucket) => {
                if bucket.level == 0 || self.drain() == 0 {
                    return bucket.updated.as_micros();
                }
                let ticks = bucket.level.div_ceil(self.drain());
                let updated = bucket.updated.as_micros() / self.tick();
                updated.saturating_add(ticks).saturating_mul(self.tick())
            }
            State::FixedWindow(window) => window.start.as_micros().saturating_add(self.period()),
            State::SlidingWindow(windows) => {
                // What this window holds counts until the end of the next one.
                let periods = if windows.count > 0 { 2 } else { 1 };
                (windows.start.as_micros()).saturating_add(self.period().saturating_mul(periods))
            }
            State::SlidingLog(log) => log
                .newest()
                .map_or(0, |newest| newest.as_micros().saturating_add(self.period())),
        }
    }

    /// Whether `state` still counts at `now`; what [`expiry`](Self::expiry) says, without a division.
    pub(crate) fn counts_at(self, state: &State, now: u64) -> bool {
        match state {
            State::Bucket(bucket) => self.drain() > 0 && self.level_at(bucket, now) > 0,
            _ => self.expiry(state) > now,
        }
    }

    /// What is left of a level at `now`, in the weights it has.
    pub(crate) fn level_at(self, bucket: &BucketState, now: u64) -> u64 {
        let updated = bucket.updated.as_micros();
        let ticks = if self.tick() == 1 {
            now.saturating_sub(updated)
        } else {
            (now / self.tick()).saturating_sub(updated / self.tick())
        };
        bucket
            .level
            .saturating_sub(ticks.saturating_mul(self.drain()))
    }

    /// Microseconds that `state` lived from its own time to its expiry.
    pub(crate) fn lifetime(self, state: &State) -> u64 {
        let from = state.time().unwrap_or(Timestamp::EPOCH).as_micros();
        self.expiry(state).saturating_sub(from)
    }
}
