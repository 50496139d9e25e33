//! Throwaway servers for tests and benchmarks: started on free loopback ports, gone with the process that started them.
//!
//! Nothing here is skipped silently: where a server's program is missing, starting it is an error that says how to get
//! the program.

mod haproxy;
mod http_proxy;
mod install;
mod nginx;
mod pgbouncer;
mod port;
mod postgres;
mod process;
mod program;
mod redis;
mod redis_cluster;
mod redis_sentinel;
mod stepped_clock;

pub use http_proxy::{Forwarding, ForwardingHeader, HttpProxy};
pub use install::install;
pub use pgbouncer::PgBouncer;
pub use port::free_port;
pub use postgres::{PostgresServer, postgres_programs};
pub use process::Process;
pub use program::{cache, find_on_path};
pub use redis::{RedisProgram, RedisServer};
pub use redis_cluster::RedisCluster;
pub use redis_sentinel::RedisSentinel;
pub use stepped_clock::SteppedClock;
