//! A client that does as little as it can, so that what is measured is the server.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use futures::future::try_join_all;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const CONNECTIONS: usize = 32;

/// What one route came to in one round.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Measured {
    pub(crate) per_second: u64,
    pub(crate) p99_micros: u64,
}

/// Sends about `requests` over all connections, on each one after the other.
///
/// # Errors
/// If an answer has another status, or none can be read.
pub(crate) async fn measure(
    address: SocketAddr,
    path: &'static str,
    status: u16,
    requests: usize,
) -> Result<Measured> {
    let each = requests.div_ceil(CONNECTIONS);
    let mut connections = Vec::new();
    for _ in 0..CONNECTIONS {
        connections.push(Connection::open(address).await?);
    }
    let started = Instant::now();
    // Tasks of their own, so that all of the runtime's threads work.
    let tasks = connections
        .into_iter()
        .map(|connection| tokio::spawn(connection.ask(path, status, each)));
    let mut latencies = Vec::new();
    for answered in try_join_all(tasks).await? {
        latencies.extend(answered?);
    }
    let micros = u64::try_from(started.elapsed().as_micros())?;
    latencies.sort_unstable();
    let p99 = latencies[latencies.len() * 99 / 100];
    Ok(Measured {
        per_second: u64::try_from(latencies.len())? * 1_000_000 / micros.max(1),
        p99_micros: u64::try_from(p99.as_micros())?,
    })
}

struct Connection {
    stream: TcpStream,
    received: Vec<u8>,
}

impl Connection {
    async fn open(address: SocketAddr) -> Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Self {
            stream,
            received: Vec::with_capacity(4096),
        })
    }

    async fn ask(mut self, path: &'static str, status: u16, times: usize) -> Result<Vec<Duration>> {
        let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n");
        let expected = format!("HTTP/1.1 {status} ");
        let mut latencies = Vec::with_capacity(times);
        for _ in 0..times {
            let started = Instant::now();
            self.stream.write_all(request.as_bytes()).await?;
            self.receive(&expected).await?;
            latencies.push(started.elapsed());
        }
        Ok(latencies)
    }

    /// Reads one answer to its end.
    async fn receive(&mut self, expected: &str) -> Result<()> {
        self.received.clear();
        loop {
            let count = self.stream.read_buf(&mut self.received).await?;
            ensure!(count > 0, "the server has closed the connection");
            let received = std::str::from_utf8(&self.received)?;
            let Some((head, body)) = received.split_once("\r\n\r\n") else {
                continue;
            };
            ensure!(
                head.starts_with(expected),
                "expected {expected}, not {head}"
            );
            let (_, length) = head
                .split_once("\r\ncontent-length: ")
                .with_context(|| format!("no length in {head}"))?;
            let length = length.split("\r\n").next().unwrap_or_default();
            if body.len() == length.parse::<usize>()? {
                return Ok(());
            }
        }
    }
}
