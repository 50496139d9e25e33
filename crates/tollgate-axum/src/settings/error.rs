//! What is wrong with the settings.

use std::fmt;

use tollgate_core::ParseQuotaError;

use crate::key::{ForwardedHeader, ForwardedHeaderError, Ipv6PrefixError, TrustedProxiesError};

/// Settings that do not go together.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SettingsError {
    /// No limit is set.
    #[error("limit is not set; expected a quota such as 100/minute")]
    NoLimit,
    /// The quotas do not make policies.
    #[error("the limit does not fit the algorithm")]
    Policies(#[from] tollgate_core::Error),
    /// Two ways to know the client's address.
    #[error("both trusted_proxies and trusted_hops are set; expected one of them")]
    ProxiesAndHops,
    /// A header to read, and nobody whose word is taken.
    #[error(
        "forwarded_header is {0}, but no proxy is trusted to write it; expected trusted_proxies or trusted_hops with it"
    )]
    HeaderWithoutProxies(ForwardedHeader),
}

/// Everything that is wrong with the environment.
///
/// ```
/// use tollgate_axum::Settings;
///
/// let error = Settings::from_vars([
///     ("TOLLGATE_LIMIT", "10/mont"),
///     ("TOLLGATE_TIMEOUT", "100"),
///     ("TOLLGATE_TIMOUT", "100ms"),
/// ])
/// .unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     "3 environment variables cannot be used\n  \
///      TOLLGATE_LIMIT=\"10/mont\": column 4: unknown unit \"mont\"; expected one of second, minute, hour, day, week or ms\n  \
///      TOLLGATE_TIMEOUT=\"100\": \"100\" is no duration; expected a number and a unit, such as 100ms or 1s\n  \
///      TOLLGATE_TIMOUT is unknown; did you mean TOLLGATE_TIMEOUT?"
/// );
/// ```
#[derive(Debug)]
pub struct EnvError {
    variables: Vec<VariableError>,
}

/// One variable, and what is wrong with it.
#[derive(Debug)]
pub struct VariableError {
    variable: String,
    problem: VariableProblem,
}

/// What is wrong with a variable.
#[derive(Debug)]
#[non_exhaustive]
pub enum VariableProblem {
    /// It begins with `TOLLGATE_` and is no setting.
    Unknown {
        /// The setting with the most similar name.
        nearest: &'static str,
    },
    /// Its value is no UTF-8.
    NotUnicode,
    /// Its value is empty.
    Empty,
    /// It is there more than once.
    Repeated,
    /// It and another variable exclude each other.
    Excluded {
        /// The other one.
        by: &'static str,
    },
    /// Its value means nothing.
    Invalid {
        /// The value.
        value: String,
        /// Why.
        reason: Box<ValueError>,
    },
}

/// Why a text is no value of a setting.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ValueError {
    /// Of `limit`.
    #[error(transparent)]
    Limit(#[from] ParseQuotaError),
    /// Of `algorithm`.
    #[error(transparent)]
    Algorithm(#[from] tollgate_core::Error),
    /// Of `headers`: no family of this name.
    #[error(
        "{0:?} is no family of headers; expected \"x-ratelimit\", \"ratelimit\", both with a comma between, or \"none\""
    )]
    Headers(String),
    /// Of `trusted_proxies`.
    #[error(transparent)]
    TrustedProxies(#[from] TrustedProxiesError),
    /// Of `trusted_hops`.
    #[error("{0:?} is no number of proxies; expected 1 to 255")]
    TrustedHops(String),
    /// Of `forwarded_header`.
    #[error(transparent)]
    ForwardedHeader(#[from] ForwardedHeaderError),
    /// Of `ipv6_prefix`.
    #[error(transparent)]
    Ipv6Prefix(#[from] Ipv6PrefixError),
    /// Of `failure_mode`.
    #[error("{0:?} is no failure mode; expected open, closed or fallback")]
    FailureMode(String),
    /// Of `timeout`: no duration.
    #[error("{0:?} is no duration; expected a number and a unit, such as 100ms or 1s")]
    NotADuration(String),
    /// Of `timeout`: a duration out of range.
    #[error("{0:?} is out of range; expected 1ms to 1h")]
    TimeoutOutOfRange(String),
}

impl EnvError {
    pub(super) fn new(variables: Vec<VariableError>) -> Self {
        Self { variables }
    }

    /// The variables, by name; at least one.
    #[must_use]
    pub fn variables(&self) -> &[VariableError] {
        &self.variables
    }
}

/// A line for each variable.
impl fmt::Display for EnvError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.variables.len();
        let noun = if count == 1 { "variable" } else { "variables" };
        write!(f, "{count} environment {noun} cannot be used")?;
        for variable in &self.variables {
            write!(f, "\n  {variable}")?;
        }
        Ok(())
    }
}

impl std::error::Error for EnvError {}

impl VariableError {
    pub(super) fn new(variable: impl Into<String>, problem: VariableProblem) -> Self {
        Self {
            variable: variable.into(),
            problem,
        }
    }

    /// The variable's name.
    #[must_use]
    pub fn variable(&self) -> &str {
        &self.variable
    }

    /// What is wrong with it.
    #[must_use]
    pub fn problem(&self) -> &VariableProblem {
        &self.problem
    }
}

impl fmt::Display for VariableError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // An unknown name may hold anything, line breaks too.
        let variable = self.variable.escape_debug();
        match &self.problem {
            VariableProblem::Unknown { nearest } => {
                write!(f, "{variable} is unknown; did you mean {nearest}?")
            }
            VariableProblem::NotUnicode => {
                write!(f, "{variable} is not UTF-8; expected text")
            }
            VariableProblem::Empty => {
                write!(
                    f,
                    "{variable} is empty; expected a value, or the variable unset"
                )
            }
            VariableProblem::Repeated => {
                write!(f, "{variable} is set more than once; expected one value")
            }
            VariableProblem::Excluded { by } => {
                write!(f, "{variable} and {by} are both set; expected one of them")
            }
            VariableProblem::Invalid { value, reason } => {
                write!(f, "{variable}={value:?}: {reason}")
            }
        }
    }
}

impl std::error::Error for VariableError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.problem {
            VariableProblem::Invalid { reason, .. } => Some(&**reason),
            _ => None,
        }
    }
}
