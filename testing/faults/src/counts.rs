//! What the proxy has seen.

use std::sync::atomic::{AtomicU64, Ordering};

/// What the proxy has seen since it was started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Connections that it accepted.
    pub accepted: u64,
    /// Those of them that are open.
    pub open: u64,
    /// Bytes that came from clients, whether or not they were passed on.
    pub from_clients: u64,
    /// Bytes that came from the server, whether or not they were passed on.
    pub from_server: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Counters {
    accepted: AtomicU64,
    closed: AtomicU64,
    pub(crate) from_clients: AtomicU64,
    pub(crate) from_server: AtomicU64,
}

impl Counters {
    pub(crate) fn accepted(&self) {
        self.accepted.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn closed(&self) {
        self.closed.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn read(&self) -> Counts {
        // Read in this order, nobody is seen to close who was not seen to open.
        let closed = self.closed.load(Ordering::Acquire);
        let accepted = self.accepted.load(Ordering::Acquire);
        Counts {
            accepted,
            open: accepted.saturating_sub(closed),
            from_clients: self.from_clients.load(Ordering::Relaxed),
            from_server: self.from_server.load(Ordering::Relaxed),
        }
    }
}
