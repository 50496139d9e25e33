//! The service on a plain tower stack: readiness, cancellation, bodies.

use std::convert::Infallible;
use std::future::{Future, poll_fn, ready};
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use axum::extract::ConnectInfo;
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use tollgate_axum::{RateLimitLayer, Refused, Respond};
use tollgate_memory::{Algorithm, Limiter, ManualClock, MemoryStore, Policy, Quota};
use tower_layer::Layer;
use tower_service::Service;

use crate::server::limiter;
use crate::stores::Remote;

/// What happened to a [`Probe`] and its clones.
#[derive(Debug, Default)]
struct Seen {
    calls: AtomicU32,
    drops: AtomicU32,
    reserved: AtomicU32,
}

impl Seen {
    fn calls(&self) -> u32 {
        self.calls.load(Ordering::SeqCst)
    }

    fn drops(&self) -> u32 {
        self.drops.load(Ordering::SeqCst)
    }
}

/// A service that insists on the contract: a call without readiness is a fault, and a clone is not ready.
struct Probe {
    ready: bool,
    seen: Arc<Seen>,
}

impl Probe {
    fn new() -> (Self, Arc<Seen>) {
        let seen = Arc::<Seen>::default();
        let probe = Self {
            ready: false,
            seen: Arc::clone(&seen),
        };
        (probe, seen)
    }
}

impl Clone for Probe {
    fn clone(&self) -> Self {
        Self {
            ready: false,
            seen: Arc::clone(&self.seen),
        }
    }
}

impl Drop for Probe {
    fn drop(&mut self) {
        self.seen.drops.fetch_add(1, Ordering::SeqCst);
    }
}

impl Service<Request<Full<Bytes>>> for Probe {
    type Response = Response<Full<Bytes>>;
    type Error = Infallible;
    type Future = std::future::Ready<Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        if !self.ready {
            self.ready = true;
            self.seen.reserved.fetch_add(1, Ordering::SeqCst);
        }
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _request: Request<Full<Bytes>>) -> Self::Future {
        assert!(self.ready, "called without being ready");
        self.ready = false;
        self.seen.calls.fetch_add(1, Ordering::SeqCst);
        ready(Ok(Response::new(Full::from("served"))))
    }
}

fn request() -> Request<Full<Bytes>> {
    let mut request = Request::new(Full::default());
    let peer: SocketAddr = "203.0.113.7:9".parse().unwrap();
    request.extensions_mut().insert(ConnectInfo(peer));
    request
}

fn here(limit: u32) -> RateLimitLayer<MemoryStore> {
    RateLimitLayer::new(limiter(Quota::per_minute(limit), &ManualClock::default()))
}

fn far(store: &Remote, limit: u32) -> RateLimitLayer<Remote> {
    RateLimitLayer::new(Limiter::new(store.clone(), Quota::per_minute(limit)))
}

/// Has a request served the way that tower asks for.
async fn send<S, B>(service: &mut S) -> Response<B>
where
    S: Service<Request<Full<Bytes>>, Response = Response<B>, Error = Infallible>,
{
    let Ok(()) = poll_fn(|context| service.poll_ready(context)).await;
    let Ok(response) = service.call(request()).await;
    response
}

#[tokio::test]
async fn the_instance_that_is_ready_is_the_one_that_is_called() {
    let (probe, seen) = Probe::new();
    let mut service = here(9).layer(probe);
    for _ in 0..3 {
        assert_eq!(send(&mut service).await.status(), 200);
    }
    assert_eq!(seen.calls(), 3);

    let (probe, seen) = Probe::new();
    let mut service = far(&Remote::new(), 9).layer(probe);
    for _ in 0..3 {
        assert_eq!(send(&mut service).await.status(), 200);
    }
    assert_eq!(seen.calls(), 3);
}

#[tokio::test]
async fn o25_h13_on_a_denial_the_service_inside_is_not_called_and_dropped_once() {
    let (probe, seen) = Probe::new();
    let mut service = here(0).layer(probe);
    assert_eq!(send(&mut service).await.status(), 429);
    drop(service);
    assert_eq!((seen.calls(), seen.drops()), (0, 1));

    let (probe, seen) = Probe::new();
    let mut service = far(&Remote::new(), 0).layer(probe);
    assert_eq!(send(&mut service).await.status(), 429);
    // The instance that was ready is gone with the request; its clone is what is left.
    assert_eq!((seen.calls(), seen.drops()), (0, 1));
    drop(service);
    assert_eq!((seen.calls(), seen.drops()), (0, 2));
}

#[tokio::test]
async fn a_request_that_is_cancelled_while_it_is_judged_never_reaches_the_service() {
    let store = Remote::held();
    let (probe, seen) = Probe::new();
    let mut service = far(&store, 9).layer(probe);
    let Ok(()) = poll_fn(|context| service.poll_ready(context)).await;
    let mut future = Box::pin(service.call(request()));
    let mut context = Context::from_waker(Waker::noop());
    assert!(future.as_mut().poll(&mut context).is_pending());
    assert_eq!(store.calls(), 1);
    drop(future);
    store.let_in(1);
    assert_eq!((seen.calls(), seen.drops()), (0, 1));

    // The service goes on as if nothing had happened.
    store.let_in(1);
    assert_eq!(send(&mut service).await.status(), 200);
    assert_eq!(seen.calls(), 1);
}

#[tokio::test]
async fn nothing_is_charged_before_the_future_is_polled_where_judging_takes_one() {
    let store = Remote::new();
    let (probe, _) = Probe::new();
    let mut service = far(&store, 9).layer(probe);
    let Ok(()) = poll_fn(|context| service.poll_ready(context)).await;
    drop(service.call(request()));
    assert_eq!(store.calls(), 0);
}

#[tokio::test]
async fn requests_under_way_do_not_wait_for_one_another() {
    let store = Remote::held();
    let (probe, seen) = Probe::new();
    let mut service = far(&store, 9).layer(probe);
    let mut futures = Vec::new();
    for _ in 0..3 {
        let Ok(()) = poll_fn(|context| service.poll_ready(context)).await;
        futures.push(tokio::spawn(service.call(request())));
    }
    store.let_in(3);
    for future in futures {
        let Ok(response) = future.await.unwrap();
        assert_eq!(response.status(), 200);
    }
    assert_eq!(seen.calls(), 3);
}

#[tokio::test]
async fn what_is_not_ready_inside_is_not_ready_outside() {
    #[derive(Clone)]
    struct Never;

    impl Service<Request<Full<Bytes>>> for Never {
        type Response = Response<Full<Bytes>>;
        type Error = Infallible;
        type Future = std::future::Ready<Result<Self::Response, Infallible>>;

        fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
            Poll::Pending
        }

        fn call(&mut self, _request: Request<Full<Bytes>>) -> Self::Future {
            unreachable!("it is never ready")
        }
    }

    let mut service = here(9).layer(Never);
    let mut context = Context::from_waker(Waker::noop());
    assert!(service.poll_ready(&mut context).is_pending());
}

#[tokio::test]
async fn a_request_that_waits_for_its_turn_leaves_its_readiness_to_others_meanwhile() {
    let quota = "20/second burst 5".parse().unwrap();
    let policy = Policy::new("shape", Algorithm::LeakyBucket, quota).unwrap();
    let limiter = limiter(policy, &ManualClock::default());
    let (probe, seen) = Probe::new();
    let layer = RateLimitLayer::new(limiter).shape(Duration::from_secs(1));
    let mut service = layer.layer(probe);
    for reserved in [1, 3] {
        assert_eq!(send(&mut service).await.status(), 200);
        // The second request found the service ready, gave that up to wait, and made it ready anew.
        assert_eq!(seen.reserved.load(Ordering::SeqCst), reserved);
    }
    assert_eq!(seen.calls(), 2);
}

#[tokio::test]
async fn an_error_of_the_service_inside_is_passed_on() {
    #[derive(Clone)]
    struct Broken;

    impl Service<Request<Full<Bytes>>> for Broken {
        type Response = Response<Full<Bytes>>;
        type Error = &'static str;
        type Future = std::future::Ready<Result<Self::Response, Self::Error>>;

        fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
            Poll::Ready(Ok(()))
        }

        fn call(&mut self, _request: Request<Full<Bytes>>) -> Self::Future {
            ready(Err("broken"))
        }
    }

    assert_eq!(
        here(9).layer(Broken).call(request()).await.unwrap_err(),
        "broken"
    );
    let mut service = far(&Remote::new(), 9).layer(Broken);
    assert_eq!(service.call(request()).await.unwrap_err(), "broken");
}

#[tokio::test]
async fn a_denial_has_the_body_type_of_the_stack() {
    let (probe, _) = Probe::new();
    let mut service = here(0).layer(probe);
    let response: Response<Full<Bytes>> = send(&mut service).await;
    let body = response.into_body().collect().await.unwrap().to_bytes();
    assert!(body.starts_with(b"{\"type\":"), "{body:?}");
}

#[tokio::test]
async fn a_stack_whose_body_cannot_be_made_of_bytes_brings_a_responder() {
    /// A body of numbers.
    struct Numbers(Vec<u32>);

    #[derive(Clone)]
    struct Zero;

    impl Respond<Numbers> for Zero {
        async fn respond(&self, refused: Refused) -> Response<Numbers> {
            let mut response = Response::new(Numbers(vec![0]));
            *response.status_mut() = refused.denial.status();
            refused.denial.write_retry_after(response.headers_mut());
            response
        }
    }

    #[derive(Clone)]
    struct One;

    impl Service<Request<Full<Bytes>>> for One {
        type Response = Response<Numbers>;
        type Error = Infallible;
        type Future = std::future::Ready<Result<Self::Response, Infallible>>;

        fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
            Poll::Ready(Ok(()))
        }

        fn call(&mut self, _request: Request<Full<Bytes>>) -> Self::Future {
            ready(Ok(Response::new(Numbers(vec![1]))))
        }
    }

    let mut service = here(1).responder(Zero).layer(One);
    assert_eq!(send(&mut service).await.into_body().0, [1]);
    let refused = send(&mut service).await;
    assert_eq!(refused.status(), 429);
    assert_eq!(refused.headers()["retry-after"], "60");
    assert_eq!(refused.into_body().0, [0]);
}

#[test]
fn a_request_that_is_judged_at_once_is_answered_at_the_first_poll() {
    let (probe, seen) = Probe::new();
    let mut service = here(1).layer(probe);
    let mut context = Context::from_waker(Waker::noop());
    for status in [200, 429] {
        assert!(service.poll_ready(&mut context).is_ready());
        let future = pin!(service.call(request()));
        let Poll::Ready(Ok(response)) = future.poll(&mut context) else {
            panic!("nothing to wait for");
        };
        assert_eq!(response.status(), status);
    }
    // The denied request left the readiness it found to the next one.
    assert_eq!((seen.calls(), seen.reserved.load(Ordering::SeqCst)), (1, 2));
}
