//! What a run needs to know of a server and the store on it.

use std::net::Ipv4Addr;

use anyhow::Result;
use tollgate_core::{SharedStore, Store};
use tollgate_faults::Proxy;

use crate::run::Scene;
use crate::stack::{Stack, exposed, usual};

/// A throwaway server that keeps over a crash what it has answered, and the store that counts on it.
pub(crate) trait Backend: Send + Sized + 'static {
    /// The name in the figures.
    const NAME: &str;

    /// A running server, ready for a store.
    fn start() -> impl Future<Output = Self> + Send;

    fn port(&self) -> u16;

    /// A store as an application makes one, over a connection to that port.
    fn store(port: u16) -> impl Store;

    /// Kills the server as a crash would.
    fn kill(&mut self) -> Result<()>;

    /// Starts it again on what is left.
    fn restart(&mut self) -> Result<()>;

    /// Keeps it from doing anything, its connections included.
    fn pause(&self) -> Result<()>;

    fn resume(&self) -> Result<()>;

    fn scene(fault: &'static str) -> Scene {
        Scene {
            store: Self::NAME,
            fault,
        }
    }

    /// A proxy in front of it.
    fn proxy(&self) -> Proxy {
        Proxy::start((Ipv4Addr::LOCALHOST, self.port())).unwrap()
    }

    /// Each stack over a store of its own.
    fn stacks(port: u16) -> [Stack; 2] {
        [usual(Self::store(port)), exposed(Self::store(port))]
    }

    /// The store with nothing around it, to see what was counted.
    fn bare(&self) -> SharedStore {
        SharedStore::new(Self::store(self.port()))
    }
}
