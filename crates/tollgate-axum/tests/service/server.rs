//! A server on a port of its own, and clients that speak to it.

use std::net::SocketAddr;

use axum::Router;
use reqwest::{Client, Method, RequestBuilder, Response};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tollgate_memory::{Limiter, ManualClock, MemoryStore, Policies};

/// A limiter in memory, in a time that stands still until the test moves it.
pub(crate) fn limiter(policies: impl Into<Policies>, clock: &ManualClock) -> Limiter<MemoryStore> {
    Limiter::new(MemoryStore::new(), policies).clock(clock.clone())
}

/// An axum server, until it is dropped.
pub(crate) struct Server {
    address: SocketAddr,
    task: JoinHandle<()>,
    client: Client,
}

impl Server {
    /// Serves `app` the way the crate asks for: with the peers' addresses.
    pub(crate) async fn start(app: Router) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let app = app.into_make_service_with_connect_info::<SocketAddr>();
        let task = tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        Self {
            address,
            task,
            client: http1(),
        }
    }

    /// Serves `app` without telling it who is on the other side.
    pub(crate) async fn start_without_peers(app: Router) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let task = tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        Self {
            address,
            task,
            client: http1(),
        }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// A request that is not sent yet.
    pub(crate) fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.client.request(method, self.url(path))
    }

    pub(crate) async fn get(&self, path: &str) -> Response {
        self.request(Method::GET, path).send().await.unwrap()
    }

    /// The status of one GET.
    pub(crate) async fn status(&self, path: &str) -> u16 {
        self.get(path).await.status().as_u16()
    }

    /// The statuses of GETs one after the other.
    pub(crate) async fn statuses<const N: usize>(&self, paths: [&str; N]) -> [u16; N] {
        let mut statuses = [0; N];
        for (status, path) in statuses.iter_mut().zip(paths) {
            *status = self.status(path).await;
        }
        statuses
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// A client of HTTP/1.1.
pub(crate) fn http1() -> Client {
    Client::builder().no_proxy().build().unwrap()
}

/// A client that speaks HTTP/2 from the first byte.
pub(crate) fn http2() -> Client {
    let client = Client::builder().no_proxy().http2_prior_knowledge();
    client.build().unwrap()
}
