//! The one error type: what kind of trouble, where, and whether a charge may have happened.

use std::borrow::Cow;
use std::error::Error as StdError;
use std::fmt;

/// What a fallible call of this family returns.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a call could not be answered.
///
/// A denial is never an error: it is a [`Decision`](crate::Decision).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The caller passed something no store could answer: an empty subject, a cost of zero, a key twice in one batch.
    InvalidInput,
    /// The store cannot do this at all: see its [`Capabilities`](crate::Capabilities).
    Unsupported,
    /// The store could not be reached, or the connection broke.
    Unavailable,
    /// The store did not answer in time.
    Timeout,
    /// The store, or the pool in front of it, has no room for the call just now.
    Overloaded,
    /// Others wrote the same key at the same time, more often than the store retries.
    Conflict,
    /// The store refused the credentials or the command.
    Refused,
    /// What the store holds under the key is not what this library wrote there.
    Corrupt,
    /// Anything else; the source tells.
    Other,
}

impl ErrorKind {
    /// Whether the same call may succeed later without anybody changing anything.
    #[must_use]
    pub const fn is_transient(self) -> bool {
        matches!(
            self,
            Self::Unavailable | Self::Timeout | Self::Overloaded | Self::Conflict
        )
    }

    /// Whether the fault lies with the call, so that no [`FailureMode`](crate::FailureMode) may turn it into an answer.
    #[must_use]
    pub const fn is_callers_fault(self) -> bool {
        matches!(self, Self::InvalidInput | Self::Unsupported)
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::InvalidInput => "invalid input",
            Self::Unsupported => "unsupported",
            Self::Unavailable => "store unavailable",
            Self::Timeout => "store timed out",
            Self::Overloaded => "store overloaded",
            Self::Conflict => "conflicting writes",
            Self::Refused => "store refused the call",
            Self::Corrupt => "corrupt stored state",
            Self::Other => "store failed",
        })
    }
}

/// The error of every call: a kind, the store it came from, a sentence and the cause.
///
/// One word wide, so that a `Result` on the hit path stays small.
///
/// ```
/// use tollgate_core::{Error, ErrorKind};
///
/// let error = Error::new(ErrorKind::Timeout, "no answer within 100 ms").with_store("redis").with_charge_unknown();
/// assert!(error.is_transient());
/// assert!(error.may_have_charged());
/// assert_eq!(error.to_string(), "redis: store timed out: no answer within 100 ms");
/// ```
pub struct Error(Box<Inner>);

struct Inner {
    kind: ErrorKind,
    store: &'static str,
    message: Cow<'static, str>,
    may_have_charged: bool,
    source: Option<Box<dyn StdError + Send + Sync>>,
}

impl Error {
    /// An error that certainly charged nothing.
    ///
    /// `message` is a lower-case phrase without a trailing stop: what was wrong and what would be right.
    #[must_use]
    #[cold]
    pub fn new(kind: ErrorKind, message: impl Into<Cow<'static, str>>) -> Self {
        Self(Box::new(Inner {
            kind,
            store: "",
            message: message.into(),
            may_have_charged: false,
            source: None,
        }))
    }

    /// Names the store the error came from.
    #[must_use]
    pub fn with_store(mut self, store: &'static str) -> Self {
        self.0.store = store;
        self
    }

    /// Keeps the cause.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        self.0.source = Some(source.into());
        self
    }

    /// Says that the store may have charged the hit before the error came about.
    #[must_use]
    pub fn with_charge_unknown(mut self) -> Self {
        self.0.may_have_charged = true;
        self
    }

    /// What kind of trouble it is.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The store it came from; empty if it came from none.
    #[must_use]
    pub fn store(&self) -> &'static str {
        self.0.store
    }

    /// Whether the same call may succeed later without anybody changing anything.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        self.0.kind.is_transient()
    }

    /// Whether the hit may have been charged in spite of the error.
    ///
    /// `false` is a promise; `true` means nobody knows.
    #[must_use]
    pub fn may_have_charged(&self) -> bool {
        self.0.may_have_charged
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.0.store.is_empty() {
            write!(f, "{}: ", self.0.store)?;
        }
        write!(f, "{}: {}", self.0.kind, self.0.message)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Error")
            .field("kind", &self.0.kind)
            .field("store", &self.0.store)
            .field("message", &self.0.message)
            .field("may_have_charged", &self.0.may_have_charged)
            .field("source", &self.0.source)
            .finish()
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0
            .source
            .as_deref()
            .map(|source| source as &(dyn StdError + 'static))
    }
}
