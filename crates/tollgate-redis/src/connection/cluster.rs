//! A cluster, and the slots that move in it.

use std::sync::Arc;
use std::time::Duration;

use redis::aio::ConnectionLike;
use redis::cluster::ClusterClient;
use redis::cluster_async::ClusterConnection;
use redis::cluster_routing::{RoutingInfo, SingleNodeRoutingInfo};
use redis::{Cmd, ErrorKind, RedisError, RedisResult, ServerErrorKind, Value};
use tokio::sync::OnceCell;

use super::Message;
use crate::error::Failure;

/// A shared connection to all nodes, opened when it is first needed.
#[derive(Clone)]
pub(crate) struct Cluster {
    client: Option<Arc<ClusterClient>>,
    connection: Arc<OnceCell<ClusterConnection>>,
}

/// How often a command follows its slot before the caller is told that it keeps moving.
const MOVES: u32 = 8;
/// How long a command waits for a slot whose keys are on their way.
const PAUSE: Duration = Duration::from_millis(10);

impl Cluster {
    pub(crate) fn new(client: ClusterClient) -> Self {
        Self {
            client: Some(Arc::new(client)),
            connection: Arc::new(OnceCell::new()),
        }
    }

    pub(crate) fn connected(connection: ClusterConnection) -> Self {
        Self {
            client: None,
            connection: Arc::new(OnceCell::new_with(Some(connection))),
        }
    }

    pub(crate) async fn query(&self, message: Message<'_>) -> Result<Value, Failure> {
        follow(&mut self.connection().await?, message).await
    }

    pub(crate) async fn query_node(
        &self,
        command: &Cmd,
        node: &(String, u16),
    ) -> Result<Value, Failure> {
        query_node(&mut self.connection().await?, command, node).await
    }

    async fn connection(&self) -> Result<ClusterConnection, Failure> {
        let connect = || async {
            match &self.client {
                Some(client) => client.get_async_connection().await,
                // Unreachable in practice: without a client the cell was filled from the start.
                None => Err(RedisError::from((ErrorKind::Client, "not connected"))),
            }
        };
        let connection = self.connection.get_or_try_init(connect).await;
        connection.cloned().map_err(Failure::while_connecting)
    }
}

/// Sends a command to the node of its key, and after it wherever its slot has moved.
///
/// A node that names another one has not carried the command out, so nothing is ever done twice.
pub(crate) async fn follow(
    connection: &mut ClusterConnection,
    message: Message<'_>,
) -> Result<Value, Failure> {
    let Message::One(command) = message else {
        return super::plain(connection, message).await;
    };
    let mut answer = send(connection, command).await;
    for _ in 0..MOVES {
        let Err(error) = &answer else { break };
        let node = error
            .redirect_node()
            .and_then(|(address, _)| address.rsplit_once(':'))
            .and_then(|(host, port)| Some((host.to_owned(), port.parse().ok()?)));
        answer = match (error.kind(), node) {
            (ErrorKind::Server(ServerErrorKind::Moved), Some(node)) => {
                at_node(connection, command, &node).await
            }
            (ErrorKind::Server(ServerErrorKind::Ask), Some(node)) => {
                asking(connection, command, node).await
            }
            (ErrorKind::Server(ServerErrorKind::TryAgain), _) => {
                tokio::time::sleep(PAUSE).await;
                send(connection, command).await
            }
            _ => break,
        };
    }
    Ok(answer?)
}

pub(crate) async fn query_node(
    connection: &mut ClusterConnection,
    command: &Cmd,
    node: &(String, u16),
) -> Result<Value, Failure> {
    Ok(at_node(connection, command, node).await?)
}

async fn send(connection: &mut ClusterConnection, command: &Cmd) -> RedisResult<Value> {
    let answer = connection.req_packed_command(command).await;
    answer.and_then(Value::extract_error)
}

fn address((host, port): &(String, u16)) -> SingleNodeRoutingInfo {
    SingleNodeRoutingInfo::ByAddress {
        host: host.clone(),
        port: *port,
    }
}

async fn at_node(
    connection: &mut ClusterConnection,
    command: &Cmd,
    node: &(String, u16),
) -> RedisResult<Value> {
    let routing = RoutingInfo::SingleNode(address(node));
    let answer = connection.route_command(command.clone(), routing).await;
    answer.and_then(Value::extract_error)
}

/// Asks the node that a slot is moving to, which answers only right after it was told that it is meant.
async fn asking(
    connection: &mut ClusterConnection,
    command: &Cmd,
    node: (String, u16),
) -> RedisResult<Value> {
    let mut pipeline = redis::pipe();
    pipeline.cmd("ASKING").ignore().add_command(command.clone());
    let answers = connection
        .route_pipeline(pipeline, 0, 2, address(&node))
        .await?;
    let answer = answers.into_iter().next_back().unwrap_or(Value::Nil);
    answer.extract_error()
}

/// The masters in an answer to `CLUSTER SLOTS`: for each range of slots its ends, its master, and replicas.
pub(crate) fn masters(slots: Value) -> Result<Vec<(String, u16)>, Failure> {
    const STRANGE: Failure = Failure::Strange("CLUSTER SLOTS");
    let Value::Array(ranges) = slots else {
        return Err(STRANGE);
    };
    let mut masters = Vec::new();
    for range in ranges {
        let Value::Array(parts) = range else {
            return Err(STRANGE);
        };
        let master = match parts.get(2) {
            Some(Value::Array(master)) => match &master[..] {
                [Value::BulkString(host), Value::Int(port), ..] => String::from_utf8(host.clone())
                    .ok()
                    .zip(u16::try_from(*port).ok()),
                _ => None,
            },
            _ => None,
        };
        let master = master.ok_or(STRANGE)?;
        if !masters.contains(&master) {
            masters.push(master);
        }
    }
    Ok(masters)
}
