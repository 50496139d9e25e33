//! The faults.

use std::pin::Pin;
use std::thread::sleep;
use std::time::Duration;

use anyhow::Result;
use redis::aio::{ConnectionManager, ConnectionManagerConfig};
use redis::cluster::ClusterClientBuilder;
use redis::sentinel::{SentinelClient, SentinelServerType};
use tollgate_redis::redis;
use tollgate_services::{RedisCluster, RedisProgram, RedisSentinel, RedisServer};

use crate::load::{Outcome, during};

type Scenario = fn() -> Pin<Box<dyn Future<Output = Result<Outcome>>>>;

/// Every fault by its name.
pub(crate) fn all() -> Vec<(&'static str, Scenario)> {
    vec![
        ("SCRIPT FLUSH every 20 ms", || Box::pin(script_flush())),
        ("CLIENT KILL every 100 ms", || Box::pin(client_kill())),
        ("kill -9 and restart, data kept (AOF, fsync always)", || {
            Box::pin(crash())
        }),
        ("SIGSTOP for 5 s", || Box::pin(freeze())),
        ("Sentinel failover", || Box::pin(failover())),
        ("a slot moves, three times", || Box::pin(migration())),
        ("`maxmemory` reached for 500 ms", || Box::pin(full())),
        ("FLUSHALL, three times (the counts are lost)", || {
            Box::pin(flush())
        }),
        ("a list planted under one of the keys", || {
            Box::pin(planted())
        }),
    ]
}

fn manager(server: &RedisServer) -> Result<ConnectionManager> {
    let client = redis::Client::open(server.url())?;
    Ok(ConnectionManager::new_lazy_with_config(
        client,
        ConnectionManagerConfig::new(),
    )?)
}

fn times(count: u32, pause: Duration, fault: impl Fn() -> Result<String>) -> Result<()> {
    for _ in 0..count {
        fault()?;
        sleep(pause);
    }
    Ok(())
}

async fn script_flush() -> Result<Outcome> {
    let server = RedisServer::start(RedisProgram::System)?;
    during(manager(&server)?, move || {
        times(50, Duration::from_millis(20), || {
            server.command(&["SCRIPT", "FLUSH"])
        })?;
        Ok(server)
    })
    .await
}

async fn client_kill() -> Result<Outcome> {
    let server = RedisServer::start(RedisProgram::System)?;
    during(manager(&server)?, move || {
        times(10, Duration::from_millis(100), || {
            server.command(&["CLIENT", "KILL", "TYPE", "normal"])
        })?;
        Ok(server)
    })
    .await
}

async fn crash() -> Result<Outcome> {
    let settings = [
        "--save",
        "",
        "--appendonly",
        "yes",
        "--appendfsync",
        "always",
    ];
    let mut server = RedisServer::start_with(RedisProgram::System, &settings)?;
    during(manager(&server)?, move || {
        server.kill()?;
        sleep(Duration::from_millis(500));
        server.restart()?;
        Ok(server)
    })
    .await
}

async fn freeze() -> Result<Outcome> {
    let server = RedisServer::start(RedisProgram::System)?;
    during(manager(&server)?, move || {
        server.process().signal("STOP")?;
        sleep(Duration::from_secs(5));
        server.process().signal("CONT")?;
        Ok(server)
    })
    .await
}

async fn failover() -> Result<Outcome> {
    let mut group = RedisSentinel::start(RedisProgram::System)?;
    let name = RedisSentinel::MASTER.to_owned();
    let client = SentinelClient::build(group.urls(), name, None, SentinelServerType::Master)?;
    during(client, move || {
        group.kill_master()?;
        sleep(Duration::from_secs(4));
        Ok(group)
    })
    .await
}

async fn migration() -> Result<Outcome> {
    let cluster = RedisCluster::start(RedisProgram::System)?;
    let client = ClusterClientBuilder::new(cluster.urls())
        .retries(0)
        .build()?;
    during(client, move || {
        times(3, Duration::from_millis(200), || {
            cluster
                .move_slot_of("tollgate:f1::fault:{subject%207}")
                .map(|()| String::new())
        })?;
        Ok(cluster)
    })
    .await
}

async fn full() -> Result<Outcome> {
    let server = RedisServer::start(RedisProgram::System)?;
    during(manager(&server)?, move || {
        server.command(&["CONFIG", "SET", "maxmemory", "1"])?;
        sleep(Duration::from_millis(500));
        server.command(&["CONFIG", "SET", "maxmemory", "0"])?;
        Ok(server)
    })
    .await
}

async fn flush() -> Result<Outcome> {
    let server = RedisServer::start(RedisProgram::System)?;
    during(manager(&server)?, move || {
        times(3, Duration::from_millis(300), || {
            server.command(&["FLUSHALL"])
        })?;
        Ok(server)
    })
    .await
}

async fn planted() -> Result<Outcome> {
    let server = RedisServer::start(RedisProgram::System)?;
    during(manager(&server)?, move || {
        let name = "tollgate:f1::fault:{subject%207}";
        // In one go, since a hit between the two would make the key anew.
        let plant = "redis.call('DEL', KEYS[1]) return redis.call('LPUSH', KEYS[1], 'x')";
        server.command(&["EVAL", plant, "1", name])?;
        sleep(Duration::from_millis(300));
        Ok(server)
    })
    .await
}
