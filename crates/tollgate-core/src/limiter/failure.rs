//! What a limiter answers when its store cannot.

use std::time::Duration;

/// What a limiter answers when its store cannot.
///
/// Only the store's own trouble is turned into an answer. A mistake of the caller (an empty subject, a cost of zero,
/// something the store does not support) stays an error in every mode.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename_all = "lowercase")
)]
pub enum FailureMode {
    /// Admit: the service stays up, unlimited until the store is back.
    #[default]
    Open,
    /// Deny: nothing passes uncounted.
    Closed,
    /// Let the store's stand-in judge: a wrapper with [`Capabilities::fallback`](crate::Capabilities::fallback).
    ///
    /// Where that cannot answer either, it denies like [`Closed`](Self::Closed). On a store without a stand-in, the
    /// limiter reports [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) instead of an answer.
    Fallback,
}

impl FailureMode {
    /// When to try again after [`Closed`](Self::Closed) denied: one second, because nobody can know better.
    pub const RETRY_AFTER: Duration = Duration::from_secs(1);
}
