//! The connections a store can work over.

use std::fmt;

use redis::aio::{ConnectionLike, ConnectionManager, MultiplexedConnection};
use redis::{Cmd, Value};

use crate::error::Failure;

/// A way to reach the server, brought by the caller: see the `From` implementations for what there is.
///
/// Prefer one shared [`ConnectionManager`]: all calls travel over one connection without waiting for each other, and
/// it reconnects by itself. A pool pays two more trips for each checkout.
#[derive(Clone)]
pub struct Connection(Kind);

#[derive(Clone)]
enum Kind {
    Manager(ConnectionManager),
    Multiplexed(MultiplexedConnection),
    #[cfg(feature = "deadpool")]
    Pool(deadpool_redis::Pool),
}

impl Connection {
    /// Sends one command and waits for its answer.
    pub(crate) async fn query(&self, command: &Cmd) -> Result<Value, Failure> {
        let value = match &self.0 {
            Kind::Manager(manager) => manager.clone().req_packed_command(command).await,
            Kind::Multiplexed(connection) => connection.clone().req_packed_command(command).await,
            #[cfg(feature = "deadpool")]
            Kind::Pool(pool) => {
                let mut connection = pool.get().await.map_err(crate::pool::unsent)?;
                let answer = connection.req_packed_command(command).await;
                if let Err(error) = &answer
                    && crate::pool::spoils(error)
                {
                    drop(deadpool_redis::Connection::take(connection));
                }
                answer
            }
        };
        value.and_then(Value::extract_error).map_err(Failure::from)
    }

    /// Reacts to a server that is no master any more: gives the connection up, so that the next one finds the master.
    pub(crate) async fn leave(&self) {
        if let Kind::Manager(manager) = &self.0 {
            // The manager reconnects when the server has hung up, and then asks for the address anew.
            let _ = manager
                .clone()
                .req_packed_command(&redis::cmd("QUIT"))
                .await;
        }
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match &self.0 {
            Kind::Manager(_) => "ConnectionManager",
            Kind::Multiplexed(_) => "MultiplexedConnection",
            #[cfg(feature = "deadpool")]
            Kind::Pool(_) => "deadpool_redis::Pool",
        })
    }
}

impl From<ConnectionManager> for Connection {
    /// The recommended one. Build it with `new_lazy_with_config` for an application that starts before its server.
    fn from(manager: ConnectionManager) -> Self {
        Self(Kind::Manager(manager))
    }
}

impl From<MultiplexedConnection> for Connection {
    /// One connection that is not opened again when it breaks.
    fn from(connection: MultiplexedConnection) -> Self {
        Self(Kind::Multiplexed(connection))
    }
}

#[cfg(feature = "deadpool")]
impl From<deadpool_redis::Pool> for Connection {
    /// A pool, for applications that have one.
    fn from(pool: deadpool_redis::Pool) -> Self {
        Self(Kind::Pool(pool))
    }
}
