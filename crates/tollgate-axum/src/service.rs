//! The service that a layer makes.

use std::fmt;
use std::mem;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::request::Parts;
use http::{Request, Response};
use tollgate_core::Store;
use tower_service::Service;

use crate::admission::Admission;
use crate::future::ResponseFuture;
use crate::key::KeyExtractor;
use crate::layer::Config;

/// A service whose requests are limited: what a [`RateLimitLayer`](crate::RateLimitLayer) makes.
///
/// It is ready when the service inside is. Its own answers need a body that can be made of [`Bytes`], such as axum's
/// `Body` or `Full<Bytes>`.
pub struct RateLimitService<Inner, S, K> {
    config: Arc<Config<S, K>>,
    inner: Inner,
}

impl<Inner, S, K> RateLimitService<Inner, S, K> {
    pub(crate) const fn new(config: Arc<Config<S, K>>, inner: Inner) -> Self {
        Self { config, inner }
    }
}

impl<Inner: Clone, S, K> Clone for RateLimitService<Inner, S, K> {
    fn clone(&self) -> Self {
        Self::new(Arc::clone(&self.config), self.inner.clone())
    }
}

impl<Inner: fmt::Debug, S: fmt::Debug, K> fmt::Debug for RateLimitService<Inner, S, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RateLimitService")
            .field("limiter", &self.config.rules.limiter)
            .field("inner", &self.inner)
            .finish_non_exhaustive()
    }
}

impl<Inner, S, K, RequestBody, ResponseBody> Service<Request<RequestBody>>
    for RateLimitService<Inner, S, K>
where
    Inner:
        Service<Request<RequestBody>, Response = Response<ResponseBody>> + Clone + Send + 'static,
    Inner::Future: Send,
    S: Store + Clone,
    K: KeyExtractor,
    RequestBody: Send + 'static,
    ResponseBody: From<Bytes> + 'static,
{
    type Response = Response<ResponseBody>;
    type Error = Inner::Error;
    type Future = ResponseFuture<Inner::Future, ResponseBody, Inner::Error>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<RequestBody>) -> Self::Future {
        let (parts, body) = request.into_parts();
        match self.config.admit_now(&parts) {
            Some(Admission::Exempt | Admission::Admitted) => {
                ResponseFuture::serving(self.inner.call(Request::from_parts(parts, body)))
            }
            Some(Admission::Refused(refusal)) => {
                ResponseFuture::refused(refusal.into_response().map(ResponseBody::from))
            }
            None => {
                // The instance that was polled ready is the one to call; its clone has to become ready anew.
                let clone = self.inner.clone();
                let inner = mem::replace(&mut self.inner, clone);
                let config = Arc::clone(&self.config);
                ResponseFuture::judging(Box::pin(serve(config, inner, parts, body)))
            }
        }
    }
}

/// Judges a request and has it served, where judging takes a future.
async fn serve<Inner, S, K, RequestBody, ResponseBody>(
    config: Arc<Config<S, K>>,
    mut inner: Inner,
    parts: Parts,
    body: RequestBody,
) -> Result<Response<ResponseBody>, Inner::Error>
where
    Inner: Service<Request<RequestBody>, Response = Response<ResponseBody>>,
    S: Store + Clone,
    K: KeyExtractor,
    ResponseBody: From<Bytes> + 'static,
{
    match config.admit(&parts).await {
        Admission::Exempt | Admission::Admitted => {
            inner.call(Request::from_parts(parts, body)).await
        }
        Admission::Refused(refusal) => Ok(refusal.into_response().map(ResponseBody::from)),
    }
}
