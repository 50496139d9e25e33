//! Settings from the environment.

use std::ffi::OsString;
use std::num::NonZeroU8;

use serde::Deserialize;
use serde::de::IntoDeserializer;
use serde::de::value::{Error as TextError, StrDeserializer};
use tollgate_core::FailureMode;

use super::Settings;
use super::error::{EnvError, ValueError, VariableError, VariableProblem};
use super::fields::Fields;

/// What the names of the variables begin with.
const BEGINNING: &str = "TOLLGATE_";

const TRUSTED_PROXIES: &str = "TOLLGATE_TRUSTED_PROXIES";
const TRUSTED_HOPS: &str = "TOLLGATE_TRUSTED_HOPS";

/// Reads a text into the field it is for.
type Set = fn(&mut Fields, &str) -> Result<(), ValueError>;

/// The variables, in the order of the documentation.
const VARIABLES: [(&str, Set); 10] = [
    ("TOLLGATE_LIMIT", |fields, text| {
        put(&mut fields.limit, text.parse())
    }),
    ("TOLLGATE_ALGORITHM", |fields, text| {
        put(&mut fields.algorithm, text.parse())
    }),
    ("TOLLGATE_PREFIX", |fields, text| {
        put(&mut fields.prefix, Ok::<_, ValueError>(text.to_owned()))
    }),
    ("TOLLGATE_HEADERS", |fields, text| {
        put(&mut fields.headers, text.parse())
    }),
    (TRUSTED_PROXIES, |fields, text| {
        put(&mut fields.trusted_proxies, text.parse())
    }),
    (TRUSTED_HOPS, |fields, text| {
        put(&mut fields.trusted_hops, hops(text))
    }),
    ("TOLLGATE_FORWARDED_HEADER", |fields, text| {
        put(&mut fields.forwarded_header, text.parse())
    }),
    ("TOLLGATE_IPV6_PREFIX", |fields, text| {
        put(&mut fields.ipv6_prefix, text.parse())
    }),
    ("TOLLGATE_FAILURE_MODE", |fields, text| {
        put(&mut fields.failure_mode, failure_mode(text))
    }),
    ("TOLLGATE_TIMEOUT", |fields, text| {
        put(&mut fields.timeout, text.parse())
    }),
];

fn put<T, E: Into<ValueError>>(
    field: &mut Option<T>,
    value: Result<T, E>,
) -> Result<(), ValueError> {
    *field = Some(value.map_err(Into::into)?);
    Ok(())
}

fn hops(text: &str) -> Result<NonZeroU8, ValueError> {
    text.parse()
        .map_err(|_| ValueError::TrustedHops(text.to_owned()))
}

fn failure_mode(text: &str) -> Result<FailureMode, ValueError> {
    let deserializer: StrDeserializer<'_, TextError> = text.into_deserializer();
    FailureMode::deserialize(deserializer).map_err(|_| ValueError::FailureMode(text.to_owned()))
}

impl Settings {
    /// The settings in this process' environment.
    ///
    /// All variables whose names begin with `TOLLGATE_` are read, and each of them has to be one of the settings.
    ///
    /// # Errors
    /// [`EnvError`] with every variable that cannot be used: unknown names, empty values, values that are no UTF-8 or mean
    /// nothing, and variables that exclude each other.
    pub fn from_env() -> Result<Self, EnvError> {
        Self::from_vars(std::env::vars_os())
    }

    /// The settings in these variables, by the same rules as [`from_env`](Self::from_env).
    ///
    /// # Errors
    /// As [`from_env`](Self::from_env); also for a variable that is there twice.
    pub fn from_vars<N, V>(variables: impl IntoIterator<Item = (N, V)>) -> Result<Self, EnvError>
    where
        N: Into<OsString>,
        V: Into<OsString>,
    {
        let mut ours: Vec<_> = variables
            .into_iter()
            .map(|(name, value)| (name.into().to_string_lossy().into_owned(), value.into()))
            .filter(|(name, _)| name.starts_with(BEGINNING))
            .collect();
        ours.sort_unstable();

        let mut fields = Fields::default();
        let mut problems = Vec::new();
        let mut last = None;
        for (name, value) in &ours {
            let is_repeated = last.replace(name) == Some(name);
            let result = if is_repeated {
                Err(VariableProblem::Repeated)
            } else {
                read(&mut fields, name, value.to_str())
            };
            if let Err(problem) = result {
                problems.push(VariableError::new(name, problem));
            }
        }
        if fields.trusted_proxies.is_some() && fields.trusted_hops.is_some() {
            problems.push(VariableError::new(
                TRUSTED_HOPS,
                VariableProblem::Excluded {
                    by: TRUSTED_PROXIES,
                },
            ));
        }
        if problems.is_empty() {
            return Ok(Self(fields));
        }
        Err(EnvError::new(problems))
    }
}

fn read(fields: &mut Fields, name: &str, value: Option<&str>) -> Result<(), VariableProblem> {
    let Some((_, set)) = VARIABLES.iter().find(|(known, _)| *known == name) else {
        let nearest = nearest(name);
        return Err(VariableProblem::Unknown { nearest });
    };
    let value = value.ok_or(VariableProblem::NotUnicode)?;
    if value.trim().is_empty() {
        return Err(VariableProblem::Empty);
    }
    set(fields, value).map_err(|reason| VariableProblem::Invalid {
        value: value.to_owned(),
        reason: Box::new(reason),
    })
}

/// The setting whose name takes the fewest changes to become.
fn nearest(name: &str) -> &'static str {
    let changes = |known: &str| strsim::damerau_levenshtein(name, known);
    let [first, rest @ ..] = VARIABLES.map(|(known, _)| known);
    rest.into_iter().fold(first, |best, known| {
        if changes(known) < changes(best) {
            known
        } else {
            best
        }
    })
}
