//! A store that asks a server over a real connection before it answers, with a driver that has no timeout of its own.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Mutex;
use tollgate_core::{
    Batch, Capabilities, Error, ErrorKind, Key, Result, Store, SystemClock, Verdicts,
};
use tollgate_memory::MemoryStore;

use super::memory_store;

/// Sends a line and waits for a byte; then a memory store judges.
#[derive(Debug)]
pub struct LineStore {
    connection: Mutex<TcpStream>,
    memory: MemoryStore<SystemClock>,
}

impl LineStore {
    pub fn new(connection: TcpStream) -> Self {
        Self {
            connection: Mutex::new(connection),
            memory: memory_store(),
        }
    }

    /// Connects on the runtime of the caller.
    pub async fn connect(address: SocketAddr) -> Result<Self> {
        let connection = TcpStream::connect(address).await;
        Ok(Self::new(connection.map_err(lost)?))
    }

    async fn ask(&self) -> std::io::Result<u8> {
        let mut connection = self.connection.lock().await;
        connection.write_all(b"hit\n").await?;
        connection.read_u8().await
    }
}

fn lost(error: std::io::Error) -> Error {
    Error::new(ErrorKind::Unavailable, "the connection is lost")
        .with_store("line")
        .with_source(error)
}

impl Store for LineStore {
    async fn apply<'a>(&'a self, batch: Batch<'a>) -> Result<Verdicts> {
        self.ask().await.map_err(lost)?;
        self.memory.apply(batch).await
    }

    async fn reset<'a>(&'a self, keys: &'a [Key<'a>]) -> Result<u64> {
        self.ask().await.map_err(lost)?;
        self.memory.reset(keys).await
    }

    fn capabilities(&self) -> Capabilities {
        self.memory.capabilities()
    }
}

/// Answers every line of every connection with a byte, on threads of its own that end with their connections.
pub fn serve() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        while let Ok((mut connection, _)) = listener.accept() {
            let lines = BufReader::new(connection.try_clone().unwrap()).lines();
            std::thread::spawn(move || {
                for _ in lines.map_while(std::io::Result::ok) {
                    // The client may be gone by now, and then the next line does not come.
                    let _ = connection.write_all(b".");
                }
            });
        }
    });
    address
}
