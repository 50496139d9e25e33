//! A store's answer for one check: whether it is admitted, and the numbers the rest is derived from.

use crate::algorithm::{FixedWindowState, SlidingWindowState};
use crate::time::Timestamp;

/// Whether one check is admitted, and the few numbers from which its policy derives everything else.
///
/// The numbers describe the key after the call: after the charge if there was one. What they mean depends on the
/// family, so a store builds a verdict with the constructor of the family it judged.
///
/// Two stores agree when their verdicts are equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Verdict {
    allowed: bool,
    words: [u64; 3],
}

const NO_WINDOW: u64 = u64::MAX;

impl Verdict {
    /// For a bucket: how full it is, in weights.
    #[must_use]
    #[inline]
    pub const fn bucket(allowed: bool, level: u64) -> Self {
        Self {
            allowed,
            words: [level, 0, 0],
        }
    }

    /// For a fixed window: the window around the judged instant, `None` if the key has none.
    #[must_use]
    #[inline]
    pub const fn fixed_window(allowed: bool, window: Option<FixedWindowState>) -> Self {
        let words = match window {
            Some(window) => [window.count, window.start.as_micros(), 0],
            None => [0, NO_WINDOW, 0],
        };
        Self { allowed, words }
    }

    /// For a sliding window: when the current window began, and what was charged in it and in the one before.
    #[must_use]
    #[inline]
    pub const fn sliding_window(allowed: bool, windows: SlidingWindowState) -> Self {
        Self {
            allowed,
            words: [windows.count, windows.start.as_micros(), windows.previous],
        }
    }

    /// For a sliding log: the live sum, and the microseconds since the epoch at which a denied hit fits (`0` if it was
    /// admitted or never fits) and at which the log is empty (the judged instant if it is).
    #[must_use]
    #[inline]
    pub const fn sliding_log(allowed: bool, used: u64, retry_at: u64, reset_at: u64) -> Self {
        Self {
            allowed,
            words: [used, retry_at, reset_at],
        }
    }

    /// Whether the check was admitted, or would be if it was a peek.
    #[must_use]
    #[inline]
    pub const fn is_allowed(&self) -> bool {
        self.allowed
    }

    /// Where the hit's units ended in the bucket: a [`Settlement`](crate::Settlement) needs it back.
    #[must_use]
    #[inline]
    pub const fn mark(&self) -> u64 {
        self.words[0]
    }

    #[inline]
    pub(crate) const fn level(&self) -> u64 {
        self.words[0]
    }

    pub(crate) const fn count(&self) -> u64 {
        self.words[0]
    }

    pub(crate) const fn window_start(&self) -> Option<Timestamp> {
        if self.words[1] == NO_WINDOW {
            return None;
        }
        Some(Timestamp::saturating_from_micros(self.words[1]))
    }

    pub(crate) const fn windows(&self) -> SlidingWindowState {
        let start = Timestamp::saturating_from_micros(self.words[1]);
        SlidingWindowState {
            start,
            count: self.words[0],
            previous: self.words[2],
        }
    }

    pub(crate) const fn retry_at(&self) -> u64 {
        self.words[1]
    }

    pub(crate) const fn reset_at(&self) -> u64 {
        self.words[2]
    }
}
