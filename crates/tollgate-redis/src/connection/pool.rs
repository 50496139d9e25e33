//! What deadpool's pools of all kinds have in common.

use std::sync::Arc;

use deadpool_redis::{PoolError, TimeoutType};
use tollgate_core::{Error, ErrorKind};

use crate::error::Failure;

/// A checkout that failed: the command was never sent.
pub(crate) fn unsent(error: PoolError) -> Failure {
    let (kind, message) = match &error {
        PoolError::Timeout(TimeoutType::Wait) => (
            ErrorKind::Overloaded,
            "no connection of the pool became free in time; enlarge the pool, or share a `ConnectionManager`",
        ),
        PoolError::Timeout(_) => (
            ErrorKind::Timeout,
            "the pool's connection to the server was not ready in time",
        ),
        PoolError::Closed => (ErrorKind::Unavailable, "the pool is closed"),
        PoolError::NoRuntimeSpecified => (
            ErrorKind::Refused,
            "the pool has timeouts but was built without a runtime for them",
        ),
        PoolError::Backend(error) => (
            Error::from(Failure::Command(error.clone())).kind(),
            "the pool cannot connect to the server",
        ),
        PoolError::PostCreateHook(_) => (
            ErrorKind::Refused,
            "a hook of the pool refused the connection",
        ),
    };
    Failure::Unsent {
        kind,
        message,
        source: Some(Arc::new(error)),
    }
}
