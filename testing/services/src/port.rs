//! Free ports.

use std::net::{Ipv4Addr, TcpListener};

use anyhow::{Result, bail};

/// A loopback port that nobody listens on, and neither on the one 10000 above it, where a Redis Cluster node gossips.
///
/// Ports are drawn from below the range that systems hand out to clients, so that no outgoing connection takes it
/// between this call and the server's start.
///
/// # Errors
/// If a thousand draws found none.
pub fn free_port() -> Result<u16> {
    for _ in 0..1000 {
        let port = fastrand::u16(10_000..22_000);
        if is_free(port) && is_free(port + 10_000) {
            return Ok(port);
        }
    }
    bail!("no free port between 10000 and 22000 on the loopback interface")
}

fn is_free(port: u16) -> bool {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok()
}
