//! One direction of one connection.

use std::convert::Infallible;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use crate::connection::End;
use crate::fault::{Fault, Progress, Setting, length};

/// So many chunks may be under way before the sender has to wait.
const UNDER_WAY: usize = 256;
const CHUNK: usize = 16 * 1024;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    ToServer,
    ToClient,
}

/// What came in, and when it is to go out.
struct Chunk {
    due: Instant,
    bytes: Vec<u8>,
}

pub(crate) struct Pipe<'a> {
    pub(crate) direction: Direction,
    pub(crate) setting: watch::Receiver<Setting>,
    pub(crate) counter: &'a AtomicU64,
}

impl Pipe<'_> {
    /// Passes on what `from` sends until it has closed; then closes `to`.
    pub(crate) async fn run(
        self,
        from: impl AsyncRead + Send + Unpin,
        to: impl AsyncWrite + Send + Unpin,
    ) -> Result<(), End> {
        let (queue, chunks) = channel(UNDER_WAY);
        let (direction, setting) = (self.direction, self.setting.clone());
        tokio::try_join!(
            self.take_in(from, queue),
            give_out(direction, setting, chunks, to)
        )?;
        Ok(())
    }

    async fn take_in(
        mut self,
        mut from: impl AsyncRead + Send + Unpin,
        queue: Sender<Chunk>,
    ) -> Result<(), End> {
        loop {
            let mut bytes = vec![0; CHUNK];
            match from.read(&mut bytes).await {
                Ok(0) => return Ok(()),
                Ok(read) => bytes.truncate(read),
                Err(_) => {
                    audible(&mut self.setting).await;
                    return Err(End::Reset);
                }
            }
            self.counter.fetch_add(length(&bytes), Ordering::Relaxed);
            let due = Instant::now() + self.latency();
            if queue.send(Chunk { due, bytes }).await.is_err() {
                return Ok(());
            }
        }
    }

    fn latency(&self) -> Duration {
        let fault = self.setting.borrow().fault;
        match (fault, self.direction) {
            (Fault::Latency { to_server, .. }, Direction::ToServer) => to_server,
            (Fault::Latency { to_client, .. }, Direction::ToClient) => to_client,
            _ => Duration::ZERO,
        }
    }
}

async fn give_out(
    direction: Direction,
    mut setting: watch::Receiver<Setting>,
    mut chunks: Receiver<Chunk>,
    mut to: impl AsyncWrite + Send + Unpin,
) -> Result<(), End> {
    let mut progress = Progress::default();
    while let Some(Chunk { due, mut bytes }) = chunks.recv().await {
        sleep_until(due).await;
        let setting = audible(&mut setting).await;
        let is_last = direction == Direction::ToClient && progress.apply(setting, &mut bytes);
        to.write_all(&bytes).await.map_err(|_| End::Reset)?;
        if is_last {
            return Err(End::Closed);
        }
    }
    audible(&mut setting).await;
    // The peer may be gone already, and then nobody is left to tell.
    let _ = to.shutdown().await;
    Ok(())
}

/// Waits until something may pass, and returns the setting of that moment.
async fn audible(setting: &mut watch::Receiver<Setting>) -> Setting {
    let heard = setting.wait_for(|setting| setting.fault != Fault::Silence);
    match heard.await.map(|setting| *setting) {
        Ok(setting) => setting,
        // The proxy is being dropped, and with it this connection.
        Err(_) => match std::future::pending::<Infallible>().await {},
    }
}
