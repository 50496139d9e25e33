//! What a failure means: its kind, what to do about it, and whether a charge may have happened.

use std::sync::Arc;
use std::time::Duration;

use sqlx::postgres::{PgDatabaseError, PgSeverity};
use tollgate_core::{Error, ErrorKind};

/// The name this store gives itself in errors.
pub(crate) const STORE: &str = "postgres";

/// The function's own word for: lost a race, ask again with locks.
pub(crate) const RACE: &str = "TG001";
const LATER_VERSION: &str = "TG002";

/// A failure that several callers may have to be told of.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    pub(crate) kind: ErrorKind,
    message: String,
    pub(crate) may_have_charged: bool,
    source: Option<Arc<sqlx::Error>>,
}

impl Failure {
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            may_have_charged: false,
            source: None,
        }
    }

    pub(crate) fn with_charge_unknown(self) -> Self {
        Self {
            may_have_charged: true,
            ..self
        }
    }

    fn caused_by(self, source: sqlx::Error) -> Self {
        Self {
            source: Some(Arc::new(source)),
            ..self
        }
    }

    /// Whether it may lie with one question of a statement, so that the others deserve to be asked without it.
    pub(crate) const fn may_be_one_questions_fault(&self) -> bool {
        !self.may_have_charged
            && matches!(
                self.kind,
                ErrorKind::Timeout | ErrorKind::Conflict | ErrorKind::Corrupt | ErrorKind::Other
            )
    }
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        let error = Self::new(failure.kind, failure.message).with_store(STORE);
        let error = match failure.source {
            Some(source) => error.with_source(source),
            None => error,
        };
        if failure.may_have_charged {
            error.with_charge_unknown()
        } else {
            error
        }
    }
}

const EXHAUSTED: &str = "no connection of the pool came free in time; raise its max_connections or its acquire_timeout, \
                         or look for calls that hold theirs too long";

/// The pool was given this long for a connection.
pub(crate) fn no_connection(exhausted: bool, waited: Duration) -> Failure {
    if exhausted {
        return Failure::new(ErrorKind::Overloaded, EXHAUSTED);
    }
    let message = format!("no connection to the server within {waited:?}");
    Failure::new(ErrorKind::Unavailable, message)
}

/// A connection could not be had, so nothing was asked.
pub(crate) fn not_connected(error: sqlx::Error) -> Failure {
    let (kind, advice) = match &error {
        sqlx::Error::PoolTimedOut => (ErrorKind::Overloaded, EXHAUSTED),
        sqlx::Error::PoolClosed => (ErrorKind::Unavailable, "the pool has been closed"),
        sqlx::Error::Configuration(_) => (
            ErrorKind::Other,
            "the pool's connection options are not usable",
        ),
        sqlx::Error::Tls(_) => (
            ErrorKind::Unavailable,
            "no TLS connection; compare the ssl mode and the certificates of the pool's options",
        ),
        sqlx::Error::Database(_) => {
            return Failure {
                may_have_charged: false,
                ..answered(error)
            };
        }
        _ => (ErrorKind::Unavailable, "no connection to the server"),
    };
    Failure::new(kind, advice).caused_by(error)
}

/// A statement was sent, and this came of it.
pub(crate) fn answered(error: sqlx::Error) -> Failure {
    let sqlx::Error::Database(database) = &error else {
        let (kind, advice) = match &error {
            sqlx::Error::Io(_) | sqlx::Error::Tls(_) | sqlx::Error::WorkerCrashed => (
                ErrorKind::Unavailable,
                "the connection broke before the answer came",
            ),
            sqlx::Error::Protocol(_) => (
                ErrorKind::Unavailable,
                "the connection is out of step with the server; behind a pooler in transaction mode, turn \
                 prepared statements off",
            ),
            _ => (ErrorKind::Other, "the answer could not be read"),
        };
        return Failure::new(kind, advice)
            .with_charge_unknown()
            .caused_by(error);
    };
    let code = database.code().unwrap_or_default().into_owned();
    let (kind, advice) = meaning(&code);
    let failure = Failure::new(
        kind,
        format!("{advice} (SQLSTATE {code}: {})", database.message()),
    );
    // An error rolls the statement back. Only a session that is being ended may have got past its commit.
    let ended = database
        .try_downcast_ref::<PgDatabaseError>()
        .is_none_or(|error| matches!(error.severity(), PgSeverity::Fatal | PgSeverity::Panic));
    let failure = if ended {
        failure.with_charge_unknown()
    } else {
        failure
    };
    failure.caused_by(error)
}

/// The kind and the advice for a SQLSTATE (PostgreSQL manual, appendix A).
fn meaning(code: &str) -> (ErrorKind, &'static str) {
    match code {
        LATER_VERSION => (
            ErrorKind::Unsupported,
            "the schema was made by a newer library",
        ),
        "40001" | "40P01" | RACE => (
            ErrorKind::Conflict,
            "others wrote the same rows each time it was tried; READ COMMITTED isolation needs no retries",
        ),
        "55P03" => (
            ErrorKind::Timeout,
            "another session held a row for longer than the lock timeout",
        ),
        "57014" => (ErrorKind::Timeout, "the server cancelled the statement"),
        "25P03" | "25P04" => (ErrorKind::Timeout, "the server ended the transaction"),
        "25006" => (
            ErrorKind::Unavailable,
            "this server takes no writes, as a standby does; point the pool at the primary",
        ),
        "42883" | "42P01" | "3F000" => (
            ErrorKind::Refused,
            "the tables or functions are not there; run ensure_schema, or the script of schema_sql",
        ),
        "42501" => (
            ErrorKind::Refused,
            "the role lacks a privilege; the guide lists the ones it needs",
        ),
        "3D000" => (ErrorKind::Refused, "there is no such database"),
        "26000" | "42P05" | "08P01" => (
            ErrorKind::Unavailable,
            "a prepared statement got lost; behind a pooler in transaction mode, turn prepared statements off",
        ),
        "22003" | "22004" | "22012" | "2202E" | "XX001" | "XX002" => (
            ErrorKind::Corrupt,
            "a stored row is not one that this library wrote; reset its key",
        ),
        _ => match code.get(..2) {
            Some("08" | "57" | "58") => (ErrorKind::Unavailable, "the server is not available"),
            Some("28") => (
                ErrorKind::Refused,
                "the server refused the role or its password",
            ),
            Some("53") => (
                ErrorKind::Overloaded,
                "the server is out of disk, memory or connections",
            ),
            _ => (ErrorKind::Other, "the statement failed"),
        },
    }
}

/// What one attempt came to, as far as a retry is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Retry {
    /// Ask again, taking locks first.
    Locked,
    /// Nothing was charged and the same may succeed now.
    Again,
    /// The connection leads to a server that cannot write; it must not go back to the pool.
    Elsewhere,
    /// Report it.
    No,
}

pub(crate) fn retry(error: &sqlx::Error) -> Retry {
    let code = error
        .as_database_error()
        .and_then(sqlx::error::DatabaseError::code);
    match code.as_deref() {
        Some(RACE) => Retry::Locked,
        Some("40001" | "40P01") => Retry::Again,
        Some("25006") => Retry::Elsewhere,
        _ => Retry::No,
    }
}
