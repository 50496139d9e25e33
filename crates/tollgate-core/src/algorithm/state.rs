//! What a store keeps per key.

use crate::algorithm::{BucketState, FixedWindowState, SlidingLogState, SlidingWindowState};
use crate::time::Timestamp;

/// What a store keeps per key, by family.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum State {
    /// For `TokenBucket`, `LeakyBucket` and `Gcra`.
    Bucket(BucketState),
    /// For `FixedWindow`.
    FixedWindow(FixedWindowState),
    /// For `SlidingWindow`.
    SlidingWindow(SlidingWindowState),
    /// For `SlidingLog`.
    SlidingLog(Box<SlidingLogState>),
}

impl State {
    /// The latest instant the state speaks of.
    #[must_use]
    pub fn time(&self) -> Option<Timestamp> {
        match self {
            Self::Bucket(bucket) => Some(bucket.updated),
            Self::FixedWindow(window) => Some(window.start),
            Self::SlidingWindow(windows) => Some(windows.start),
            Self::SlidingLog(log) => log.newest(),
        }
    }

    #[inline]
    pub(crate) fn bucket(state: Option<&Self>) -> Option<BucketState> {
        match state {
            Some(Self::Bucket(bucket)) => Some(*bucket),
            _ => None,
        }
    }

    pub(crate) fn fixed_window(state: Option<&Self>) -> Option<FixedWindowState> {
        match state {
            Some(Self::FixedWindow(window)) => Some(*window),
            _ => None,
        }
    }

    pub(crate) fn sliding_window(state: Option<&Self>) -> Option<SlidingWindowState> {
        match state {
            Some(Self::SlidingWindow(windows)) => Some(*windows),
            _ => None,
        }
    }
}
