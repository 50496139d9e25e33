//! The few values that labels take.

use tollgate_core::{Batch, ErrorKind, Op, Source, Verdicts};

/// What a call asks of the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verb {
    Hit,
    Peek,
    Settle,
    Reset,
}

impl Verb {
    pub(super) const ALL: [Self; 4] = [Self::Hit, Self::Peek, Self::Settle, Self::Reset];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Hit => "hit",
            Self::Peek => "peek",
            Self::Settle => "settle",
            Self::Reset => "reset",
        }
    }

    /// What `batch` is for: a limiter's are of one kind, and any hit makes another one a hit.
    pub(super) fn of(batch: &Batch<'_>) -> Self {
        let verbs = batch.checks().iter().map(|check| Self::of_op(&check.op));
        verbs
            .reduce(|one, other| match (one, other) {
                (Self::Hit, _) | (_, Self::Hit) => Self::Hit,
                (Self::Settle, _) | (_, Self::Settle) => Self::Settle,
                _ => Self::Peek,
            })
            .unwrap_or(Self::Peek)
    }

    const fn of_op(op: &Op) -> Self {
        match op {
            Op::Hit(_) => Self::Hit,
            Op::Peek(_) => Self::Peek,
            Op::Settle(_) => Self::Settle,
        }
    }
}

/// How a call ended, as its span says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Allowed,
    Denied,
    /// A reset that was carried out.
    Done,
    Error,
    /// The caller dropped the future.
    Abandoned,
}

impl Outcome {
    pub(super) const fn of(verdicts: &Verdicts) -> Self {
        if verdicts.is_allowed() {
            Self::Allowed
        } else {
            Self::Denied
        }
    }

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Allowed => "allowed",
            Self::Denied => "denied",
            Self::Done => "done",
            Self::Error => "error",
            Self::Abandoned => "abandoned",
        }
    }
}

/// What core may add one day, and what has no name of its own.
const OTHER: &str = "other";

pub(super) const SOURCES: [&str; 5] = ["store", "native_counter", "deny_cache", "fallback", OTHER];

/// Where `source` stands in [`SOURCES`].
#[inline]
pub(super) const fn source_place(source: Source) -> usize {
    match source {
        Source::Store => 0,
        Source::NativeCounter => 1,
        Source::DenyCache => 2,
        Source::Fallback => 3,
        _ => 4,
    }
}

pub(super) const KINDS: [&str; 9] = [
    "invalid_input",
    "unsupported",
    "unavailable",
    "timeout",
    "overloaded",
    "conflict",
    "refused",
    "corrupt",
    OTHER,
];

/// Where `kind` stands in [`KINDS`].
pub(super) const fn kind_place(kind: ErrorKind) -> usize {
    match kind {
        ErrorKind::InvalidInput => 0,
        ErrorKind::Unsupported => 1,
        ErrorKind::Unavailable => 2,
        ErrorKind::Timeout => 3,
        ErrorKind::Overloaded => 4,
        ErrorKind::Conflict => 5,
        ErrorKind::Refused => 6,
        ErrorKind::Corrupt => 7,
        _ => 8,
    }
}

pub(super) const fn kind_name(kind: ErrorKind) -> &'static str {
    KINDS[kind_place(kind)]
}
