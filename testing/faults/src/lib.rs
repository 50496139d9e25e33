//! A TCP proxy between a test and a server, which breaks connections the way networks and servers do.
//!
//! ```
//! use std::net::Ipv4Addr;
//! use tollgate_faults::{Fault, Proxy};
//!
//! # fn main() -> anyhow::Result<()> {
//! # let server = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
//! # let port = server.local_addr()?.port();
//! let proxy = Proxy::start((Ipv4Addr::LOCALHOST, port))?;
//! let address = proxy.address(); // what the client is told to connect to
//! proxy.set(Fault::Silence)?; // nothing passes, and every connection stays open
//! proxy.heal()?; // what was held back passes
//! proxy.reset_connections(); // each peer sees "connection reset"
//! # let _ = address;
//! # Ok(())
//! # }
//! ```
//!
//! It runs on a thread and a runtime of its own: a test may stop its clock or drop its runtime, and the proxy goes on.
//!
//! It is our own because no kept library does this. `noxious` had its last release in 2021, stands on dependencies of that
//! time and garbles nothing. `tokio-netem` has adapters for one stream, whose corruption is random; its proxy `trixter` is a
//! program with a REST interface, as is Toxiproxy, whose Rust crates are clients. What the tests need is small: five faults,
//! no configuration, and bytes flipped at the same places in every run.

mod connection;
mod counts;
mod fault;
mod pipe;
mod proxy;

pub use counts::Counts;
pub use fault::Fault;
pub use proxy::Proxy;
