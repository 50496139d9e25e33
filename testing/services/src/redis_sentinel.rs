//! A Redis master with one replica, watched by three Sentinels.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use tempfile::TempDir;

use crate::port::free_port;
use crate::process::Process;
use crate::redis::{RedisProgram, RedisServer, command};

/// A master, a replica, and three Sentinels that fail over within a few seconds.
#[derive(Debug)]
pub struct RedisSentinel {
    servers: Vec<RedisServer>,
    sentinels: Vec<(Process, u16)>,
    directory: TempDir,
}

impl RedisSentinel {
    /// The name under which the Sentinels know the master.
    pub const MASTER: &str = "tollgate";

    /// Starts all five and waits until the replica is in step and every Sentinel knows it.
    ///
    /// # Errors
    /// If one does not start or they are not in step within twenty seconds.
    pub fn start(program: RedisProgram) -> Result<Self> {
        let settings = [
            "--save",
            "",
            "--repl-diskless-sync",
            "yes",
            "--repl-diskless-sync-delay",
            "0",
        ];
        let master = RedisServer::start_with(program, &settings)?;
        let replica = RedisServer::start_with(program, &settings)?;
        replica.command(&["REPLICAOF", "127.0.0.1", &master.port().to_string()])?;
        let directory = TempDir::new()?;
        let mut group = Self {
            servers: vec![master, replica],
            sentinels: Vec::new(),
            directory,
        };
        group.wait("the replica is not in step", |group| {
            Ok(group.servers[1]
                .command(&["INFO", "replication"])?
                .contains("master_link_status:up"))
        })?;
        for index in 0..3 {
            group.start_sentinel(program, index)?;
        }
        group.wait(
            "the Sentinels do not know the replica and each other",
            |group| {
                let known = |(_, port): &(Process, u16)| {
                    let reply = command(*port, &["INFO", "sentinel"]).unwrap_or_default();
                    reply.contains("slaves=1,sentinels=3")
                };
                Ok(group.sentinels.iter().all(known))
            },
        )?;
        Ok(group)
    }

    fn start_sentinel(&mut self, program: RedisProgram, index: usize) -> Result<()> {
        let port = free_port()?;
        let name = Self::MASTER;
        let master = self.servers[0].port();
        let file = self.directory.path().join(format!("sentinel-{index}.conf"));
        let text = format!(
            "port {port}\nbind 127.0.0.1\ndir {}\n\
             sentinel monitor {name} 127.0.0.1 {master} 2\n\
             sentinel down-after-milliseconds {name} 500\n\
             sentinel failover-timeout {name} 3000\n",
            self.directory.path().display()
        );
        fs::write(&file, text).with_context(|| format!("cannot write {}", file.display()))?;
        let arguments = [file.to_string_lossy().into_owned(), "--sentinel".to_owned()];
        let process = Process::start(&program.find()?.to_string_lossy(), &arguments)?;
        self.sentinels.push((process, port));
        Ok(())
    }

    fn wait(&self, otherwise: &str, done: impl Fn(&Self) -> Result<bool>) -> Result<()> {
        let deadline = Instant::now() + Duration::from_secs(20);
        while Instant::now() < deadline {
            if done(self)? {
                return Ok(());
            }
            thread::sleep(Duration::from_millis(20));
        }
        bail!("{otherwise} after twenty seconds")
    }

    /// The addresses of the Sentinels.
    #[must_use]
    pub fn urls(&self) -> Vec<String> {
        self.sentinels
            .iter()
            .map(|(_, port)| format!("redis://127.0.0.1:{port}"))
            .collect()
    }

    /// The server that was the master at first, and its replica.
    #[must_use]
    pub fn servers(&self) -> &[RedisServer] {
        &self.servers
    }

    /// Sets how long a server has to be silent before the Sentinels take it for dead; half a second at first.
    ///
    /// # Errors
    /// If a Sentinel does not take it.
    pub fn set_down_after(&self, silence: Duration) -> Result<()> {
        let millis = silence.as_millis().to_string();
        let words = [
            "SENTINEL",
            "SET",
            Self::MASTER,
            "down-after-milliseconds",
            &millis,
        ];
        for (_, port) in &self.sentinels {
            let reply = command(*port, &words)?;
            if !reply.starts_with("+OK") {
                bail!("a Sentinel answered {}", reply.trim_end());
            }
        }
        Ok(())
    }

    /// Kills the first master, as a crash would, and leaves the rest to the Sentinels.
    ///
    /// # Errors
    /// If it cannot be waited for.
    pub fn kill_master(&mut self) -> Result<()> {
        self.servers[0].kill()
    }
}
