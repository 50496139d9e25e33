//! What the tests share: one server per test program, and stores over it.
#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot go on fails where it stands"
)]
#![allow(dead_code, reason = "each test program uses its own part of this")]

use std::sync::OnceLock;
use std::time::Duration;

use redis::aio::{ConnectionManager, ConnectionManagerConfig};
use tokio::runtime::Runtime;
use tollgate_redis::{RedisStore, redis};
use tollgate_services::{RedisProgram, RedisServer};

/// The program of this test program's server: the system's, or the one whose name stands in `TOLLGATE_TEST_REDIS`.
fn program() -> RedisProgram {
    let Ok(name) = std::env::var("TOLLGATE_TEST_REDIS") else {
        return RedisProgram::System;
    };
    let named = |program: &RedisProgram| program.name() == name;
    match RedisProgram::ALL.into_iter().find(named) {
        Some(program) => program,
        None => panic!("TOLLGATE_TEST_REDIS names no server: {name}; see `cargo xtask services`"),
    }
}

/// The server of this test program.
pub(crate) fn server() -> &'static RedisServer {
    static SERVER: OnceLock<RedisServer> = OnceLock::new();
    SERVER.get_or_init(|| match RedisServer::start(program()) {
        Ok(server) => {
            allow(&server, "~*", COMMANDS);
            server
        }
        Err(error) => panic!("{error:#}"),
    })
}

/// All commands that a store needs, as the documentation lists them.
pub(crate) const COMMANDS: &[&str] = &[
    // The script, and what it calls.
    "+evalsha",
    "+eval",
    "+time",
    "+get",
    "+mget",
    "+set",
    "+getrange",
    "+setrange",
    "+strlen",
    "+pttl",
    "+pexpire",
    "+unlink",
    // Fixed windows by INCREX, where the server has it.
    "+command|info",
    "+increx",
    "+pexpiretime",
    // `reset_prefix`.
    "+scan",
];

/// Makes a user who may do only that, on these keys.
pub(crate) fn allow(server: &RedisServer, keys: &str, commands: &[&str]) {
    let known = |command: &&&str| {
        let name = command.trim_start_matches('+').split('|').next();
        let info = server.command(&["COMMAND", "INFO", name.unwrap_or_default()]);
        info.is_ok_and(|info| info.starts_with("*1\r\n*") && !info.starts_with("*1\r\n*-1"))
    };
    let mut words = vec![
        "ACL", "SETUSER", "limited", "reset", "on", ">secret", keys, "-@all",
    ];
    words.extend(commands.iter().filter(known).copied());
    server.command(&words).unwrap();
}

/// The address of a server, for that user.
pub(crate) fn limited_url(server: &RedisServer) -> String {
    format!("redis://limited:secret@127.0.0.1:{}", server.port())
}

/// A manager of one shared connection to `url`, which waits long for answers: a busy machine is no failure.
pub(crate) fn manager(url: &str) -> ConnectionManager {
    let client = redis::Client::open(url).unwrap();
    let patient = Some(Duration::from_secs(30));
    let config = ConnectionManagerConfig::new()
        .set_response_timeout(patient)
        .set_connection_timeout(patient);
    ConnectionManager::new_lazy_with_config(client, config).unwrap()
}

/// A store over the server of this test program, as a user who may do nothing that a store does not need.
pub(crate) fn store() -> RedisStore {
    RedisStore::new(manager(&limited_url(server())))
}

/// A runtime for tests that are not async themselves.
pub(crate) fn runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap()
}
