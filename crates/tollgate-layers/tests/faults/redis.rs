//! Redis.

use anyhow::Result;
use tollgate_core::Store;
use tollgate_redis::RedisStore;
use tollgate_redis::redis::Client;
use tollgate_redis::redis::aio::{ConnectionManager, ConnectionManagerConfig};
use tollgate_services::{RedisProgram, RedisServer};

use crate::backend::Backend;

#[derive(Debug)]
pub(crate) struct Redis(RedisServer);

impl Backend for Redis {
    const NAME: &str = "Redis";

    async fn start() -> Self {
        let settings = [
            "--save",
            "",
            "--appendonly",
            "yes",
            "--appendfsync",
            "always",
        ];
        Self(RedisServer::start_with(RedisProgram::System, &settings).unwrap())
    }

    fn port(&self) -> u16 {
        self.0.port()
    }

    fn store(port: u16) -> impl Store {
        RedisStore::new(manager(&format!("redis://127.0.0.1:{port}")))
    }

    fn kill(&mut self) -> Result<()> {
        self.0.kill()
    }

    fn restart(&mut self) -> Result<()> {
        self.0.restart()
    }

    fn pause(&self) -> Result<()> {
        self.0.process().signal("STOP")
    }

    fn resume(&self) -> Result<()> {
        self.0.process().signal("CONT")
    }
}

pub(crate) fn manager(url: &str) -> ConnectionManager {
    let client = Client::open(url).unwrap();
    let config = ConnectionManagerConfig::new();
    ConnectionManager::new_lazy_with_config(client, config).unwrap()
}
