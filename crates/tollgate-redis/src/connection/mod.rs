//! The connections a store can work over.

#[cfg(feature = "cluster")]
mod cluster;
#[cfg(feature = "deadpool")]
mod pool;
#[cfg(feature = "sentinel")]
mod sentinel;

use std::fmt;

use redis::aio::{ConnectionLike, ConnectionManager, MultiplexedConnection};
use redis::{Cmd, Pipeline, Value};

#[cfg(feature = "deadpool")]
use crate::error::spoils_connection;
use crate::error::{Failure, says_misplaced};

/// A way to reach the server, brought by the caller: see the `From` implementations for what there is.
///
/// Prefer one shared [`ConnectionManager`]: all calls travel over one connection without waiting for each other, and
/// it reconnects by itself. A pool pays two more trips for each checkout.
///
/// A connection never sends a command twice after it may have reached the server, with one exception: a cluster
/// connection does so unless it was built with `retries(0)`.
#[derive(Clone)]
pub struct Connection(Kind);

#[derive(Clone)]
enum Kind {
    Manager(ConnectionManager),
    Multiplexed(MultiplexedConnection),
    #[cfg(feature = "deadpool")]
    Pool(deadpool_redis::Pool),
    #[cfg(feature = "cluster")]
    Cluster(cluster::Cluster),
    #[cfg(all(feature = "cluster", feature = "deadpool"))]
    ClusterPool(deadpool_redis::cluster::Pool),
    #[cfg(feature = "sentinel")]
    Sentinel(sentinel::Master),
    #[cfg(all(feature = "sentinel", feature = "deadpool"))]
    SentinelPool(deadpool_redis::sentinel::Pool),
}

/// What is sent in one go.
#[derive(Clone, Copy)]
enum Message<'a> {
    One(&'a Cmd),
    All(&'a Pipeline),
}

impl Connection {
    /// What `From<SentinelClient>` makes, with settings for the connection to the master, its timeouts above all.
    #[cfg(feature = "sentinel")]
    #[must_use]
    pub fn sentinel_with_config(
        client: redis::sentinel::SentinelClient,
        config: redis::AsyncConnectionConfig,
    ) -> Self {
        Self(Kind::Sentinel(sentinel::Master::new(client, config)))
    }

    /// Sends one command and waits for its answer.
    pub(crate) async fn query(&self, command: &Cmd) -> Result<Value, Failure> {
        self.send(Message::One(command)).await
    }

    /// Sends commands one right behind the other and waits for all answers; those that are errors stand among them.
    ///
    /// Not for clusters.
    pub(crate) async fn query_all(&self, pipeline: &Pipeline) -> Result<Vec<Value>, Failure> {
        match self.send(Message::All(pipeline)).await? {
            Value::Array(answers) => Ok(answers),
            _ => Err(Failure::Strange("a pipeline has one answer")),
        }
    }

    async fn send(&self, message: Message<'_>) -> Result<Value, Failure> {
        match &self.0 {
            Kind::Manager(manager) => {
                let answer = plain(&mut manager.clone(), message).await;
                if says_misplaced(&answer) {
                    // Once the server has hung up, the manager connects anew, and asks for the address anew.
                    let _ = plain(&mut manager.clone(), Message::One(&redis::cmd("QUIT"))).await;
                }
                answer
            }
            Kind::Multiplexed(connection) => plain(&mut connection.clone(), message).await,
            #[cfg(feature = "deadpool")]
            Kind::Pool(pool) => {
                let mut connection = pool.get().await.map_err(pool::unsent)?;
                let answer = plain(&mut connection, message).await;
                if spoils_connection(&answer) {
                    drop(deadpool_redis::Connection::take(connection));
                }
                answer
            }
            #[cfg(feature = "cluster")]
            Kind::Cluster(cluster) => cluster.query(message).await,
            #[cfg(all(feature = "cluster", feature = "deadpool"))]
            Kind::ClusterPool(pool) => {
                let mut connection = pool.get().await.map_err(pool::unsent)?;
                cluster::follow(&mut connection, message).await
            }
            #[cfg(feature = "sentinel")]
            Kind::Sentinel(master) => master.query(message).await,
            #[cfg(all(feature = "sentinel", feature = "deadpool"))]
            Kind::SentinelPool(pool) => {
                let mut connection = pool.get().await.map_err(pool::unsent)?;
                let answer = plain(&mut connection, message).await;
                if spoils_connection(&answer) {
                    drop(deadpool_redis::sentinel::Connection::take(connection));
                }
                answer
            }
        }
    }

    /// Whether keys lie on several servers by their slots, so that one call may only name keys of one slot.
    pub(crate) const fn has_slots(&self) -> bool {
        match &self.0 {
            #[cfg(feature = "cluster")]
            Kind::Cluster(_) => true,
            #[cfg(all(feature = "cluster", feature = "deadpool"))]
            Kind::ClusterPool(_) => true,
            _ => false,
        }
    }

    /// The masters of a cluster.
    #[cfg(feature = "cluster")]
    pub(crate) async fn masters(&self) -> Result<Vec<(String, u16)>, Failure> {
        let slots = self.query(redis::cmd("CLUSTER").arg("SLOTS")).await?;
        cluster::masters(slots)
    }

    /// Sends one command to one node of a cluster.
    #[cfg(feature = "cluster")]
    pub(crate) async fn query_node(
        &self,
        command: &Cmd,
        node: &(String, u16),
    ) -> Result<Value, Failure> {
        match &self.0 {
            Kind::Cluster(cluster) => cluster.query_node(command, node).await,
            #[cfg(feature = "deadpool")]
            Kind::ClusterPool(pool) => {
                let mut connection = pool.get().await.map_err(pool::unsent)?;
                cluster::query_node(&mut connection, command, node).await
            }
            _ => self.query(command).await,
        }
    }
}

/// Sends and waits; an error that came as the only answer is an error.
async fn plain(
    connection: &mut impl ConnectionLike,
    message: Message<'_>,
) -> Result<Value, Failure> {
    let answer = match message {
        Message::One(command) => {
            let answer = connection.req_packed_command(command).await;
            answer.and_then(Value::extract_error)
        }
        Message::All(pipeline) => pipeline.query_async(connection).await.map(Value::Array),
    };
    Ok(answer?)
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match &self.0 {
            Kind::Manager(_) => "ConnectionManager",
            Kind::Multiplexed(_) => "MultiplexedConnection",
            #[cfg(feature = "deadpool")]
            Kind::Pool(_) => "deadpool_redis::Pool",
            #[cfg(feature = "cluster")]
            Kind::Cluster(_) => "ClusterConnection",
            #[cfg(all(feature = "cluster", feature = "deadpool"))]
            Kind::ClusterPool(_) => "deadpool_redis::cluster::Pool",
            #[cfg(feature = "sentinel")]
            Kind::Sentinel(_) => "SentinelClient",
            #[cfg(all(feature = "sentinel", feature = "deadpool"))]
            Kind::SentinelPool(_) => "deadpool_redis::sentinel::Pool",
        })
    }
}

impl From<ConnectionManager> for Connection {
    /// The recommended one. Build it with `new_lazy_with_config` for an application that may start before its server.
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

#[cfg(feature = "cluster")]
impl From<redis::cluster::ClusterClient> for Connection {
    /// A cluster, connected to at the first call. Build the client with `retries(0)`: the store follows moved slots by
    /// itself, and a command that may have reached a node must not be sent again.
    fn from(client: redis::cluster::ClusterClient) -> Self {
        Self(Kind::Cluster(cluster::Cluster::new(client)))
    }
}

#[cfg(feature = "cluster")]
impl From<redis::cluster_async::ClusterConnection> for Connection {
    /// A cluster that is connected to already. Build its client with `retries(0)`: the store follows moved slots by
    /// itself, and a command that may have reached a node must not be sent again.
    fn from(connection: redis::cluster_async::ClusterConnection) -> Self {
        Self(Kind::Cluster(cluster::Cluster::connected(connection)))
    }
}

#[cfg(all(feature = "cluster", feature = "deadpool"))]
impl From<deadpool_redis::cluster::Pool> for Connection {
    /// A pool of cluster connections, for applications that have one.
    fn from(pool: deadpool_redis::cluster::Pool) -> Self {
        Self(Kind::ClusterPool(pool))
    }
}

#[cfg(feature = "sentinel")]
impl From<redis::sentinel::SentinelClient> for Connection {
    /// The master that the sentinels name, over one shared connection. They are asked again whenever it breaks, falls
    /// silent, or turns out to be a master no more. Waits for an answer for 500 ms, the driver's default; see
    /// [`Connection::sentinel_with_config`].
    fn from(client: redis::sentinel::SentinelClient) -> Self {
        Self::sentinel_with_config(client, redis::AsyncConnectionConfig::new())
    }
}

#[cfg(all(feature = "sentinel", feature = "deadpool"))]
impl From<deadpool_redis::sentinel::Pool> for Connection {
    /// A pool of connections to the master that the sentinels name, for applications that have one.
    fn from(pool: deadpool_redis::sentinel::Pool) -> Self {
        Self(Kind::SentinelPool(pool))
    }
}
