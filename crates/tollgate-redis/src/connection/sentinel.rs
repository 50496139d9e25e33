//! The master that the sentinels name.

use std::sync::Arc;

use redis::aio::MultiplexedConnection;
use redis::sentinel::SentinelClient;
use redis::{AsyncConnectionConfig, Value};
use tokio::sync::Mutex;

use super::Message;
use crate::error::{Failure, spoils_connection};

/// One shared connection to the master, opened when it is first needed.
#[derive(Clone)]
pub(crate) struct Master(Arc<Mutex<State>>);

struct State {
    client: SentinelClient,
    config: AsyncConnectionConfig,
    connection: Option<MultiplexedConnection>,
    /// Counts the connections, so that a broken one is given up once.
    opened: u64,
}

impl Master {
    pub(crate) fn new(client: SentinelClient, config: AsyncConnectionConfig) -> Self {
        Self(Arc::new(Mutex::new(State {
            client,
            config,
            connection: None,
            opened: 0,
        })))
    }

    pub(crate) async fn query(&self, message: Message<'_>) -> Result<Value, Failure> {
        let (mut connection, number) = self.connection().await?;
        let answer = super::plain(&mut connection, message).await;
        if spoils_connection(&answer) {
            self.give_up(number).await;
        }
        answer
    }

    async fn connection(&self) -> Result<(MultiplexedConnection, u64), Failure> {
        let mut state = self.0.lock().await;
        if let Some(connection) = &state.connection {
            return Ok((connection.clone(), state.opened));
        }
        let State { client, config, .. } = &mut *state;
        let connection = client.get_async_connection_with_config(config).await;
        let connection = connection.map_err(Failure::while_connecting)?;
        state.connection = Some(connection.clone());
        state.opened += 1;
        Ok((connection, state.opened))
    }

    async fn give_up(&self, number: u64) {
        let mut state = self.0.lock().await;
        if state.opened == number {
            state.connection = None;
        }
    }
}
