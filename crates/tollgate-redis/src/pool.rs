//! What deadpool's pools of all kinds have in common.

use deadpool_redis::{PoolError, TimeoutType};
use redis::RedisError;
use tollgate_core::{Error, ErrorKind};

use crate::error::{self, Failure, STORE};

/// A checkout that failed: the command was never sent.
pub(crate) fn unsent(error: PoolError) -> Failure {
    let failure = match error {
        PoolError::Timeout(TimeoutType::Wait) => error::unsent(
            ErrorKind::Overloaded,
            "no connection of the pool became free in time; enlarge the pool, or share a `ConnectionManager`",
        ),
        PoolError::Timeout(_) => error::unsent(
            ErrorKind::Timeout,
            "the pool's connection to the server was not ready in time",
        ),
        PoolError::Closed => error::unsent(ErrorKind::Unavailable, "the pool is closed"),
        PoolError::NoRuntimeSpecified => error::unsent(
            ErrorKind::Refused,
            "the pool has timeouts but was built without a runtime for them",
        ),
        PoolError::Backend(error) => {
            let kind = Error::from(Failure::Command(error.clone())).kind();
            error::unsent(kind, "the pool cannot connect to the server").with_source(error)
        }
        PoolError::PostCreateHook(_) => error::unsent(
            ErrorKind::Refused,
            "a hook of the pool refused the connection",
        ),
    };
    Failure::Unsent(failure.with_store(STORE))
}

/// Whether a connection that gave this error must not go back to the pool.
pub(crate) fn spoils(error: &RedisError) -> bool {
    error.is_unrecoverable_error()
        || error.is_timeout()
        || matches!(
            error.kind(),
            redis::ErrorKind::Server(
                redis::ServerErrorKind::ReadOnly | redis::ServerErrorKind::MasterDown
            )
        )
}
