//! How a run is set up.

use std::time::Duration;

/// How a run is set up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    pub(crate) require_all: bool,
    pub(crate) seed: Option<u64>,
    pub(crate) sequences: u64,
    pub(crate) patience: Duration,
}

impl Options {
    /// `all`: a case that is left out fails.
    pub const REQUIRE: &str = "TOLLGATE_REQUIRE";
    /// The seed of the first random sequence; the next ones count up from it.
    pub const SEED: &str = "TOLLGATE_SEED";
    /// How many random sequences a differential case plays.
    pub const CASES: &str = "TOLLGATE_CASES";
    /// How many random sequences a differential case plays where nothing is said.
    pub const DEFAULT_CASES: u64 = 60;

    /// Nothing required beyond what the store can do, random seeds, a minute for each case.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            require_all: false,
            seed: None,
            sequences: Self::DEFAULT_CASES,
            patience: Duration::from_secs(60),
        }
    }

    /// What the environment asks for: see [`REQUIRE`](Self::REQUIRE), [`SEED`](Self::SEED), [`CASES`](Self::CASES).
    ///
    /// # Errors
    /// [`OptionsError`] for a variable that cannot be read. Nothing is ignored: a run that was asked to require
    /// everything must not pass because of a typing error.
    pub fn from_env() -> Result<Self, OptionsError> {
        Self::read(|name| std::env::var_os(name).map(|value| value.to_string_lossy().into_owned()))
    }

    fn read(variable: impl Fn(&str) -> Option<String>) -> Result<Self, OptionsError> {
        let mut options = Self::new();
        match variable(Self::REQUIRE).as_deref() {
            None | Some("") => {}
            Some("all") => options.require_all = true,
            Some(value) => {
                return Err(OptionsError::new(
                    Self::REQUIRE,
                    value,
                    "\"all\", or nothing",
                ));
            }
        }
        if let Some(value) = variable(Self::SEED) {
            options.seed = Some(number(Self::SEED, &value)?);
        }
        if let Some(value) = variable(Self::CASES) {
            options.sequences = number(Self::CASES, &value)?;
            if options.sequences == 0 {
                // A case that plays nothing would pass.
                return Err(OptionsError::new(Self::CASES, &value, "at least 1"));
            }
        }
        Ok(options)
    }

    /// Whether a case that is left out fails. Cases that do not apply to a store never do.
    #[must_use]
    pub const fn require_all(self, require_all: bool) -> Self {
        Self {
            require_all,
            ..self
        }
    }

    /// The seed of the first random sequence.
    #[must_use]
    pub const fn seed(self, seed: u64) -> Self {
        Self {
            seed: Some(seed),
            ..self
        }
    }

    /// How many random sequences a differential case plays.
    #[must_use]
    pub const fn sequences(self, sequences: u64) -> Self {
        Self { sequences, ..self }
    }

    /// How long a case may take before it counts as hung.
    #[must_use]
    pub const fn patience(self, patience: Duration) -> Self {
        Self { patience, ..self }
    }
}

impl Default for Options {
    fn default() -> Self {
        Self::new()
    }
}

fn number(name: &'static str, value: &str) -> Result<u64, OptionsError> {
    value
        .parse()
        .map_err(|_| OptionsError::new(name, value, "a whole number below 2^64"))
}

/// A setting of the run that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{name} is {value:?}, but should be {expected}")]
pub struct OptionsError {
    name: &'static str,
    value: String,
    expected: &'static str,
}

impl OptionsError {
    pub(crate) fn new(name: &'static str, value: &str, expected: &'static str) -> Self {
        Self {
            name,
            value: value.to_owned(),
            expected,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pairs: &[(&str, &str)]) -> Result<Options, OptionsError> {
        Options::read(|name| {
            let pair = pairs.iter().find(|(key, _)| *key == name)?;
            Some(pair.1.to_owned())
        })
    }

    #[test]
    fn an_empty_environment_asks_for_nothing() {
        assert_eq!(read(&[]).unwrap(), Options::new());
    }

    #[test]
    fn every_variable_is_read() {
        let options = read(&[
            ("TOLLGATE_REQUIRE", "all"),
            ("TOLLGATE_SEED", "42"),
            ("TOLLGATE_CASES", "7"),
        ]);
        assert_eq!(
            options.unwrap(),
            Options::new().require_all(true).seed(42).sequences(7)
        );
    }

    #[test]
    fn a_variable_that_cannot_be_read_says_what_would_be_right() {
        for (name, value, expected) in [
            ("TOLLGATE_REQUIRE", "everything", "\"all\""),
            ("TOLLGATE_SEED", "-1", "a whole number"),
            ("TOLLGATE_CASES", "many", "a whole number"),
            ("TOLLGATE_CASES", "0", "at least 1"),
        ] {
            let message = read(&[(name, value)]).unwrap_err().to_string();
            assert!(
                message.contains(name) && message.contains(expected),
                "{message}"
            );
        }
    }
}
