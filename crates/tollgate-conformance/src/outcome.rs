//! How a case ends.

use std::error::Error as StdError;
use std::fmt::Write as _;
use std::panic::Location;

use crate::offer::{BoxError, Offer};

/// What a case comes to: `Err` is how it stopped early.
pub(crate) type Outcome<T = ()> = Result<T, Stop>;

/// Why a case stopped early.
#[derive(Debug)]
pub(crate) enum Stop {
    Failed(String),
    LeftOut(String),
    NotApplicable(String),
}

impl Stop {
    /// A failure, with the line of the case that found it.
    #[track_caller]
    pub(crate) fn failed(message: impl AsRef<str>) -> Self {
        let at = Location::caller();
        Self::Failed(format!(
            "{}\n  found at {}:{}",
            message.as_ref(),
            at.file(),
            at.line()
        ))
    }

    /// The failure with what was done when it happened in front.
    pub(crate) fn context(self, doing: impl std::fmt::Display) -> Self {
        match self {
            Self::Failed(message) => Self::Failed(format!("{doing}: {message}")),
            other => other,
        }
    }
}

/// The store's own trouble ends a case, unless the case looks at it.
impl From<tollgate_core::Error> for Stop {
    #[track_caller]
    fn from(error: tollgate_core::Error) -> Self {
        Self::failed(format!("the store failed: {}", chain(&error)))
    }
}

impl From<BoxError> for Stop {
    #[track_caller]
    fn from(error: BoxError) -> Self {
        Self::failed(format!("the harness failed: {}", chain(error.as_ref())))
    }
}

/// An error and its sources in one line.
pub(crate) fn chain(error: &dyn StdError) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        // Writing to a string cannot fail.
        let _ = write!(text, ": {cause}");
        source = cause.source();
    }
    text
}

impl<T> Offer<T> {
    /// What is given, or the case stops: left out or not applicable.
    pub(crate) fn or_stop(self, hook: &str) -> Outcome<T> {
        match self {
            Self::Given(given) => Ok(given),
            Self::NotOffered => Err(Stop::LeftOut(format!("the harness has no `{hook}`"))),
            Self::NotApplicable(why) => Err(Stop::NotApplicable(why.to_owned())),
        }
    }
}

/// Fails the case with the formatted message unless the condition holds.
macro_rules! ensure {
    ($condition:expr, $($message:tt)+) => {
        if !$condition {
            return Err($crate::outcome::Stop::failed(format!($($message)+)));
        }
    };
}

/// Fails the case unless both sides are equal.
macro_rules! ensure_eq {
    ($left:expr, $right:expr, $($message:tt)+) => {
        match (&$left, &$right) {
            (left, right) => {
                if left != right {
                    return Err($crate::outcome::Stop::failed(format!(
                        "{}\n  got      {left:?}\n  expected {right:?}",
                        format_args!($($message)+)
                    )));
                }
            }
        }
    };
}

pub(crate) use {ensure, ensure_eq};
