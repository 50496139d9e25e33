//! The service that a layer makes.

use std::fmt;
use std::future::poll_fn;
use std::mem;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::request::Parts;
use http::{Request, Response};
use tollgate_core::Store;
use tower_service::Service;

use crate::admission::{Admission, Pass, Start};
use crate::future::ResponseFuture;
use crate::headers::Advertised;
use crate::key::KeyExtractor;
use crate::layer::Config;
use crate::refusal::Refusal;
use crate::respond::{Refused, Respond};

/// A service whose requests are limited: what a [`RateLimitLayer`](crate::RateLimitLayer) makes.
///
/// It is ready when the service inside is. Its own answers need a body that can be made of [`Bytes`](bytes::Bytes), such
/// as axum's `Body` or `Full<Bytes>`.
pub struct RateLimitService<Inner, S, K, R> {
    config: Arc<Config<S, K, R>>,
    inner: Inner,
}

impl<Inner, S, K, R> RateLimitService<Inner, S, K, R> {
    pub(crate) const fn new(config: Arc<Config<S, K, R>>, inner: Inner) -> Self {
        Self { config, inner }
    }
}

impl<Inner: Clone, S, K, R> Clone for RateLimitService<Inner, S, K, R> {
    fn clone(&self) -> Self {
        Self::new(Arc::clone(&self.config), self.inner.clone())
    }
}

impl<Inner: fmt::Debug, S: fmt::Debug, K, R> fmt::Debug for RateLimitService<Inner, S, K, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RateLimitService")
            .field("limiter", &self.config.rules.limiter)
            .field("inner", &self.inner)
            .finish_non_exhaustive()
    }
}

impl<Inner, S, K, R, RequestBody, ResponseBody> Service<Request<RequestBody>>
    for RateLimitService<Inner, S, K, R>
where
    Inner:
        Service<Request<RequestBody>, Response = Response<ResponseBody>> + Clone + Send + 'static,
    Inner::Future: Send,
    S: Store + Clone,
    K: KeyExtractor,
    R: Respond<ResponseBody>,
    RequestBody: Send + 'static,
    ResponseBody: Send + 'static,
{
    type Response = Response<ResponseBody>;
    type Error = Inner::Error;
    type Future = ResponseFuture<Inner::Future, ResponseBody, Inner::Error>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<RequestBody>) -> Self::Future {
        let (mut parts, body) = request.into_parts();
        let start = match self.config.begin(&mut parts) {
            Start::Judged(Admission::Exempt) => {
                let request = Request::from_parts(parts, body);
                return ResponseFuture::serving(self.inner.call(request), None);
            }
            Start::Judged(Admission::Admitted(pass)) if pass.is_plain() => {
                let request = Request::from_parts(parts, body);
                return ResponseFuture::serving(self.inner.call(request), Some(pass.advertised));
            }
            Start::Judged(Admission::Refused(refusal)) => return self.refuse(*refusal, parts),
            start => start,
        };
        // The instance that was polled ready is the one to call; its clone has to become ready anew.
        let clone = self.inner.clone();
        let inner = mem::replace(&mut self.inner, clone);
        let config = Arc::clone(&self.config);
        ResponseFuture::boxed(Box::pin(serve(config, inner, parts, body, start)))
    }
}

impl<Inner, S, K, R> RateLimitService<Inner, S, K, R> {
    /// The answer in the place of the service inside, which is not called.
    fn refuse<F, B, E>(&self, refusal: Refusal, parts: Parts) -> ResponseFuture<F, B, E>
    where
        S: Store + Clone,
        K: KeyExtractor,
        R: Respond<B>,
    {
        let (refused, advertised) = refusal.of(parts);
        match self.config.responder.respond_now(refused) {
            Ok(mut response) => {
                advertised.write(&mut response);
                ResponseFuture::refused(response)
            }
            Err(refused) => {
                let responder = self.config.responder.clone();
                ResponseFuture::boxed(Box::pin(async move {
                    Ok(answer(&responder, refused, advertised).await)
                }))
            }
        }
    }
}

async fn answer<B, R: Respond<B>>(
    responder: &R,
    refused: Refused,
    advertised: Advertised,
) -> Response<B> {
    let mut response = responder.respond(refused).await;
    advertised.write(&mut response);
    response
}

/// Has a request served, where judging it or what comes after takes a future.
///
/// `start` is what is known so far.
async fn serve<Inner, S, K, R, RequestBody, ResponseBody>(
    config: Arc<Config<S, K, R>>,
    inner: Inner,
    mut parts: Parts,
    body: RequestBody,
    start: Start<S>,
) -> Result<Response<ResponseBody>, Inner::Error>
where
    Inner: Service<Request<RequestBody>, Response = Response<ResponseBody>> + Clone,
    S: Store + Clone,
    K: KeyExtractor,
    R: Respond<ResponseBody>,
{
    let pass = match config.finish(start, &mut parts).await {
        Admission::Admitted(pass) => Some(pass),
        Admission::Exempt => None,
        Admission::Refused(refusal) => {
            drop(inner);
            let (refused, advertised) = refusal.of(parts);
            return Ok(answer(&config.responder, refused, advertised).await);
        }
    };
    let mut inner = inner;
    let Some(Pass {
        mut advertised,
        delay,
        counting,
    }) = pass
    else {
        return inner.call(Request::from_parts(parts, body)).await;
    };
    if !delay.is_zero() {
        // What the service inside keeps for a request that is about to come is of use to others meanwhile.
        inner = inner.clone();
        tokio::time::sleep(delay).await;
        poll_fn(|context| inner.poll_ready(context)).await?;
    }
    let response = inner.call(Request::from_parts(parts, body)).await?;
    let (parts, body) = response.into_parts();
    if let Some(counting) = counting
        && let Some(news) = counting.settle_up(&config, &parts).await
    {
        advertised = news;
    }
    let mut response = Response::from_parts(parts, body);
    advertised.write(&mut response);
    Ok(response)
}
