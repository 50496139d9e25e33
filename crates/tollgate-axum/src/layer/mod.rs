//! The layer: what to limit, for whom and how.

mod answers;
mod charges;
mod config;

use std::fmt;
use std::sync::Arc;

use tollgate_core::{Limiter, SharedStore, Store};
use tower_layer::Layer;

pub(crate) use config::{Charging, Config, Rules};

use crate::key::{KeyExtractor, PeerAddress};
use crate::respond::ProblemDocument;
use crate::service::RateLimitService;

/// Limits the requests of an axum router or of any tower stack over HTTP.
///
/// ```
/// use axum::{Router, routing::get};
/// use tollgate_axum::RateLimitLayer;
/// use tollgate_memory::{Limiter, MemoryStore, Quota};
///
/// let limit = RateLimitLayer::new(Limiter::new(MemoryStore::new(), "100/minute".parse::<Quota>()?));
/// let app: Router = Router::new().route("/search", get(|| async { "found" })).route_layer(limit);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// A request takes units for its client ([`key`](Self::key); the peer's address unless told otherwise) in its scope
/// ([`scope`](Self::scope); the route's template unless told otherwise). If every policy has them, the request goes on;
/// otherwise it is answered with `429 Too Many Requests`, and the service inside is never called.
///
/// Clones share everything, and so do all services made of one layer. Counters lie in the store alone, so it does not
/// matter how many connections or processes there are.
///
/// Dropping a response's future before its answer may leave the hit charged or not, nothing in between; the service
/// inside is called only after the answer.
pub struct RateLimitLayer<S = SharedStore, K = PeerAddress, R = ProblemDocument> {
    config: Arc<Config<S, K, R>>,
}

/// What becomes of a request whose client has no identity: the extractor answered `Ok(None)`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum MissingKey {
    /// Refuses it with `500 Internal Server Error`, since the service was set up without a way to tell its clients apart.
    #[default]
    Reject,
    /// Lets it pass, uncounted and without headers.
    Skip,
}

impl<S: Store + Clone> RateLimitLayer<S> {
    /// A layer that enforces the policies of `limiter`, per route and peer address, one unit per request.
    ///
    /// The limiter's own scope, if it has one, takes the place of the routes' templates.
    #[must_use]
    pub fn new(limiter: Limiter<S>) -> Self {
        Self {
            config: Arc::new(Config::new(limiter)),
        }
    }
}

impl<S: Store + Clone, K: KeyExtractor, R: Clone> RateLimitLayer<S, K, R> {
    /// Counts by what `key` finds in a request, instead of by the peer's address.
    ///
    /// A closure from the request's head to text, bytes, a number or an address will do.
    #[must_use]
    pub fn key<L: KeyExtractor>(self, key: L) -> RateLimitLayer<S, L, R> {
        RateLimitLayer {
            config: Arc::new(Arc::unwrap_or_clone(self.config).with_key(key)),
        }
    }

    /// Says what becomes of a request without an identity; [`MissingKey::Reject`] unless set.
    #[must_use]
    pub fn on_missing_key(self, missing_key: MissingKey) -> Self {
        self.with(|rules| rules.missing_key = missing_key)
    }

    /// Counts under a name, shared with every route and layer of the same name.
    ///
    /// Without a name (of the layer or of the limiter) each route counts by itself, under its template: `/items/{id}` is
    /// one counter per client, not one per item. Templates of nested routers are whole: `/shop/items/{id}`. Where there is no
    /// template (in a fallback, or on a stack without axum's router) all requests of a client share one counter, whatever
    /// their paths.
    #[must_use]
    pub fn scope(self, name: &str) -> Self {
        self.with(|rules| rules.scope.name = Some(Arc::from(name)))
    }

    /// Counts each method by itself: `GET /items` apart from `POST /items`.
    ///
    /// `HEAD` counts as `GET`, which answers it. Methods outside of RFC 9110 and RFC 5789 share one counter.
    #[must_use]
    pub fn scope_by_method(self, by_method: bool) -> Self {
        self.with(|rules| rules.scope.by_method = by_method)
    }

    fn with(self, change: impl FnOnce(&mut Rules<S>)) -> Self {
        let mut config = Arc::unwrap_or_clone(self.config);
        change(&mut config.rules);
        // Services of the layer as it was go on with what they have built.
        config.built = Arc::default();
        Self {
            config: Arc::new(config),
        }
    }
}

impl<S, K, R> Clone for RateLimitLayer<S, K, R> {
    fn clone(&self) -> Self {
        Self {
            config: Arc::clone(&self.config),
        }
    }
}

impl<S: fmt::Debug, K, R> fmt::Debug for RateLimitLayer<S, K, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RateLimitLayer")
            .field("limiter", &self.config.rules.limiter)
            .finish_non_exhaustive()
    }
}

impl<S, K, R, Inner> Layer<Inner> for RateLimitLayer<S, K, R> {
    type Service = RateLimitService<Inner, S, K, R>;

    fn layer(&self, inner: Inner) -> Self::Service {
        RateLimitService::new(Arc::clone(&self.config), inner)
    }
}
