//! What is asked of a key.

use crate::algorithm::MAX_STORED;
use crate::cost::Cost;
use crate::time::Timestamp;

/// What is asked of one key. Peek, hit and settle are modes of one path, so they cannot disagree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    /// Take `cost` units if they fit.
    Hit(Cost),
    /// Say whether `cost` units would fit, and change nothing.
    Peek(Cost),
    /// Correct an earlier hit now that its real cost is known.
    Settle(Settlement),
}

impl Op {
    /// The units the answer is about: for a settlement, what was really used (at least 1).
    #[must_use]
    #[inline]
    pub fn cost(&self) -> Cost {
        match self {
            Self::Hit(cost) | Self::Peek(cost) => *cost,
            Self::Settle(settlement) => Cost::new(settlement.actual).unwrap_or(Cost::ONE),
        }
    }
}

/// An earlier hit and what it really cost.
///
/// What was charged too much is given back only where it still counts: within the same window, or as far as the
/// hit's own units have not drained from the bucket yet (first in, first out). So a settlement never makes room that
/// the smaller charge would not have left, provided that between charge and settlement the clock did not step back,
/// the quota stayed the same, and nobody else gave units of this key back or reset it. Otherwise units may be given
/// back that have drained meanwhile, at most as many as were charged too much.
///
/// What was used on top is charged even past the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Settlement {
    /// The instant the hit was charged: [`Verdicts::at`](crate::Verdicts::at) of the answer.
    pub charged_at: Timestamp,
    /// What was charged then.
    pub charged: Cost,
    /// Where the hit's units ended in the bucket: [`Verdict::mark`](crate::Verdict::mark) of the answer.
    pub mark: u64,
    /// What was really used; zero gives all of it back.
    pub actual: u64,
}

impl Settlement {
    /// A window's count once the real cost is known: given back only within the window that was charged.
    pub(crate) fn settle_count(&self, count: u64, window_start: Timestamp) -> u64 {
        let charged = self.charged.get();
        if self.actual > charged {
            return count.saturating_add(self.actual - charged).min(MAX_STORED);
        }
        if self.charged_at < window_start {
            return count;
        }
        count.saturating_sub(charged - self.actual)
    }
}
