//! One connection through the proxy.

use std::net::SocketAddr;

use tokio::net::TcpStream;
use tokio::sync::watch;

use crate::counts::Counters;
use crate::fault::Setting;
use crate::pipe::{Direction, Pipe};

/// How a connection ends other than by both peers having closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// Both peers see that the other has closed.
    Closed,
    /// Both peers see "connection reset".
    Reset,
}

pub(crate) struct Connection<'a> {
    pub(crate) upstream: SocketAddr,
    pub(crate) setting: watch::Receiver<Setting>,
    /// Changes when all connections are to be reset.
    pub(crate) resets: watch::Receiver<u64>,
    pub(crate) counters: &'a Counters,
}

impl Connection<'_> {
    /// Passes bytes between `client` and the upstream until the connection ends.
    pub(crate) async fn serve(mut self, mut client: TcpStream) {
        let connected = tokio::select! {
            connected = TcpStream::connect(self.upstream) => connected.ok(),
            _ = self.resets.changed() => None,
        };
        let Some(mut server) = connected else {
            reset(client);
            return;
        };
        // Latency is what the fault says, and no more.
        let _ = client.set_nodelay(true);
        let _ = server.set_nodelay(true);
        let setting = self.setting;
        let end = tokio::select! {
            end = pass(&mut client, &mut server, setting, self.counters) => end,
            _ = self.resets.changed() => Err(End::Reset),
        };
        if end == Err(End::Reset) {
            reset(client);
            reset(server);
        }
    }
}

async fn pass(
    client: &mut TcpStream,
    server: &mut TcpStream,
    setting: watch::Receiver<Setting>,
    counters: &Counters,
) -> Result<(), End> {
    let (from_client, to_client) = client.split();
    let (from_server, to_server) = server.split();
    let forth = Pipe {
        direction: Direction::ToServer,
        setting: setting.clone(),
        counter: &counters.from_clients,
    };
    let back = Pipe {
        direction: Direction::ToClient,
        setting,
        counter: &counters.from_server,
    };
    tokio::try_join!(
        forth.run(from_client, to_server),
        back.run(from_server, to_client)
    )?;
    Ok(())
}

/// Closes so that the peer sees "connection reset".
fn reset(stream: TcpStream) {
    // It fails only for a connection that is gone already.
    let _ = stream.set_zero_linger();
    drop(stream);
}
