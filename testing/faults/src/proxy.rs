//! The proxy.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::{Context, Result};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::watch;
use tollgate_services::free_port;

use crate::connection::Connection;
use crate::counts::{Counters, Counts};
use crate::fault::{Fault, Setting};

/// Whether to listen, and whom to tell that it is so.
struct Order {
    listen: bool,
    done: SyncSender<io::Result<()>>,
}

/// A proxy on a loopback port of its own. It ends, with all its connections, when it is dropped.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    shared: Arc<Shared>,
    orders: Option<UnboundedSender<Order>>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    upstream: Mutex<SocketAddr>,
    setting: watch::Sender<Setting>,
    resets: watch::Sender<u64>,
    counters: Counters,
}

impl Proxy {
    /// Listens on a free port of 127.0.0.1 and passes every connection on to `upstream`.
    ///
    /// # Errors
    /// If there is no free port or no thread to be had.
    pub fn start(upstream: impl Into<SocketAddr>) -> Result<Self> {
        let shared = Arc::new(Shared {
            upstream: Mutex::new(upstream.into()),
            setting: watch::Sender::default(),
            resets: watch::Sender::default(),
            counters: Counters::default(),
        });
        // Below the ports that systems hand out to clients, so that none takes it while nobody listens.
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()?));
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let (orders, inbox) = unbounded_channel();
        let accepting = accept(address, Arc::clone(&shared), inbox);
        let thread = thread::Builder::new()
            .name(format!("proxy on port {}", address.port()))
            .spawn(move || runtime.block_on(accepting))?;
        let proxy = Self {
            address,
            shared,
            orders: Some(orders),
            thread: Some(thread),
        };
        proxy.listen(true)?;
        Ok(proxy)
    }

    /// Where clients connect.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// The port of [`address`](Self::address).
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.address.port()
    }

    /// Lets `fault` take the place of the present one. It holds when this returns.
    ///
    /// # Errors
    /// If the port was taken by somebody else while [`Fault::Refuse`] was on.
    pub fn set(&self, fault: Fault) -> Result<()> {
        self.shared.setting.send_modify(|setting| {
            *setting = Setting {
                fault,
                number: setting.number + 1,
            };
        });
        self.listen(fault != Fault::Refuse)
    }

    /// Ends the present fault.
    ///
    /// # Errors
    /// As [`set`](Self::set).
    pub fn heal(&self) -> Result<()> {
        self.set(Fault::None)
    }

    /// Resets every open connection, towards both peers. New ones are welcome.
    pub fn reset_connections(&self) {
        self.shared.resets.send_modify(|number| *number += 1);
    }

    /// Passes connections that come from now on to another server. Those that are open stay where they are.
    pub fn redirect(&self, upstream: impl Into<SocketAddr>) {
        let place = self.shared.upstream.lock();
        *place.unwrap_or_else(PoisonError::into_inner) = upstream.into();
    }

    /// What it has seen so far.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.shared.counters.read()
    }

    fn listen(&self, listen: bool) -> Result<()> {
        const GONE: &str = "the proxy's thread is gone";
        let (done, answer) = sync_channel(1);
        let orders = self.orders.as_ref().context(GONE)?;
        orders.send(Order { listen, done }).context(GONE)?;
        let answer = answer.recv().context(GONE)?;
        answer.with_context(|| format!("cannot listen on {}", self.address))
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.orders = None;
        if let Some(thread) = self.thread.take() {
            // It has said why on its way down, if it panicked.
            let _ = thread.join();
        }
    }
}

/// Accepts connections while it is told to listen, until nobody is left to tell.
async fn accept(address: SocketAddr, shared: Arc<Shared>, mut orders: UnboundedReceiver<Order>) {
    let mut listener = None;
    loop {
        tokio::select! {
            order = orders.recv() => {
                let Some(Order { listen, done }) = order else { return };
                let result = obey(&mut listener, listen, address).await;
                // Whoever asked may have given up.
                let _ = done.send(result);
            }
            client = next(listener.as_ref()) => {
                shared.counters.accepted();
                tokio::spawn(serve(client, Arc::clone(&shared)));
            }
        }
    }
}

async fn obey(
    listener: &mut Option<TcpListener>,
    listen: bool,
    address: SocketAddr,
) -> io::Result<()> {
    if !listen {
        *listener = None;
    } else if listener.is_none() {
        *listener = Some(TcpListener::bind(address).await?);
    }
    Ok(())
}

/// The next connection; never while nobody listens.
async fn next(listener: Option<&TcpListener>) -> TcpStream {
    let Some(listener) = listener else {
        return std::future::pending().await;
    };
    loop {
        match listener.accept().await {
            Ok((client, _)) => return client,
            // A client may have gone already, or there are too many open files just now.
            Err(_) => tokio::time::sleep(Duration::from_millis(1)).await,
        }
    }
}

async fn serve(client: TcpStream, shared: Arc<Shared>) {
    let upstream = *shared
        .upstream
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    let connection = Connection {
        upstream,
        setting: shared.setting.subscribe(),
        resets: shared.resets.subscribe(),
        counters: &shared.counters,
    };
    connection.serve(client).await;
    shared.counters.closed();
}
