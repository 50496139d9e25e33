//! What the layer adds to a request, in allocations.

#![expect(
    clippy::unwrap_used,
    reason = "a failed unwrap is a failed test, with the place in the message"
)]

use std::convert::Infallible;
use std::future::{Future, Ready, ready};
use std::net::SocketAddr;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use allocation_counter::measure;
use axum::extract::ConnectInfo;
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use tollgate_axum::{Headers, RateLimitLayer};
use tollgate_memory::{Limiter, MemoryStore, Quota, SharedStore};
use tower_layer::Layer;
use tower_service::Service;

/// Answers at once, with headers for which the map has room.
#[derive(Clone)]
struct Answer;

impl Service<Request<Full<Bytes>>> for Answer {
    type Response = Response<Full<Bytes>>;
    type Error = Infallible;
    type Future = Ready<Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _request: Request<Full<Bytes>>) -> Self::Future {
        let mut response = Response::new(Full::default());
        response.headers_mut().reserve(16);
        ready(Ok(response))
    }
}

fn request() -> Request<Full<Bytes>> {
    let mut request = Request::new(Full::default());
    let peer: SocketAddr = "203.0.113.7:9".parse().unwrap();
    request.extensions_mut().insert(ConnectInfo(peer));
    request
}

fn answer<S>(service: &mut S) -> u16
where
    S: Service<Request<Full<Bytes>>, Response = Response<Full<Bytes>>, Error = Infallible>,
{
    let mut context = Context::from_waker(Waker::noop());
    assert!(service.poll_ready(&mut context).is_ready());
    let future = pin!(service.call(request()));
    match future.poll(&mut context) {
        Poll::Ready(Ok(response)) => response.status().as_u16(),
        Poll::Pending => panic!("everything is at hand"),
    }
}

/// How many allocations a request makes, once everything has been met before.
fn allocations<S>(mut service: S) -> u64
where
    S: Service<Request<Full<Bytes>>, Response = Response<Full<Bytes>>, Error = Infallible>,
{
    for _ in 0..100 {
        assert_eq!(answer(&mut service), 200);
    }
    let info = measure(|| {
        for _ in 0..100 {
            assert_eq!(answer(&mut service), 200);
        }
    });
    info.count_total.div_ceil(100)
}

fn layer() -> RateLimitLayer<MemoryStore> {
    RateLimitLayer::new(Limiter::new(
        MemoryStore::new(),
        Quota::per_second(1_000_000),
    ))
}

#[test]
fn a_limit_without_headers_allocates_once_for_what_the_handler_may_ask() {
    let bare = allocations(Answer);
    let added = allocations(layer().headers(Headers::none()).layer(Answer)) - bare;
    assert_eq!(added, 1);
}

#[test]
fn a_store_chosen_at_run_time_costs_no_more() {
    let bare = allocations(Answer);
    let store = SharedStore::new(MemoryStore::new());
    let layer = RateLimitLayer::new(Limiter::new(store, Quota::per_second(1_000_000)));
    let added = allocations(layer.headers(Headers::none()).layer(Answer)) - bare;
    assert_eq!(added, 1);
}

/// One for what the handler may ask, one for each number, two for each list: its text, and what the text is shared by.
#[test]
fn headers_allocate_for_their_values_and_nothing_else() {
    let bare = allocations(Answer);
    let added = |headers| allocations(layer().headers(headers).layer(Answer)) - bare;
    assert_eq!(added(Headers::default().rate_limit(false)), 1 + 3);
    assert_eq!(added(Headers::default().x_rate_limit(false)), 1 + 4);
    assert_eq!(added(Headers::default()), 1 + 3 + 4);
}
