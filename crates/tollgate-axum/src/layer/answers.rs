//! What clients are told.

use std::future::Future;
use std::sync::Arc;

use axum_core::response::IntoResponse;
use tollgate_core::Store;

use crate::denial::DenialFormat;
use crate::headers::Headers;
use crate::key::KeyExtractor;
use crate::layer::RateLimitLayer;
use crate::respond::{ProblemDocument, Refused, RespondWith, RespondWithAsync};

impl<S: Store + Clone, K: KeyExtractor, R: Clone> RateLimitLayer<S, K, R> {
    /// Says which headers responses carry; both families unless set.
    #[must_use]
    pub fn headers(self, headers: Headers) -> Self {
        self.with(|rules| rules.headers = headers)
    }

    /// Answers requests that may not go on with what `answer` makes of them, in the place of a problem document.
    ///
    /// Status and body are the closure's: [`Denial::status`](crate::Denial::status) has the usual one. `Retry-After` and the
    /// [`Headers`] are added where it has not set them. It also answers where nobody could be named to limit; the
    /// [reason](crate::Denial::reason) tells.
    ///
    /// ```
    /// use tollgate_axum::{RateLimitLayer, Refused};
    /// use tollgate_memory::{Limiter, MemoryStore, Quota};
    ///
    /// let limit = RateLimitLayer::new(Limiter::new(MemoryStore::new(), "100/minute".parse::<Quota>()?))
    ///     .on_refusal(|refused: Refused| (refused.denial.status(), "slow down"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn on_refusal<F, A>(self, answer: F) -> RateLimitLayer<S, K, RespondWith<F>>
    where
        F: Fn(Refused) -> A + Clone + Send + Sync + 'static,
        A: IntoResponse,
    {
        self.responder(RespondWith(answer))
    }

    /// Like [`on_refusal`](Self::on_refusal), for answers that take a future.
    #[must_use]
    pub fn on_refusal_async<F, A>(self, answer: F) -> RateLimitLayer<S, K, RespondWithAsync<F>>
    where
        F: Fn(Refused) -> A + Clone + Send + Sync + 'static,
        A: Future<Output: IntoResponse> + Send,
    {
        self.responder(RespondWithAsync(answer))
    }

    /// Answers requests that may not go on by a [`Respond`](crate::Respond) of your own: for bodies that are not axum's.
    #[must_use]
    pub fn responder<T>(self, responder: T) -> RateLimitLayer<S, K, T> {
        RateLimitLayer {
            config: Arc::new(Arc::unwrap_or_clone(self.config).with_responder(responder)),
        }
    }
}

impl<S: Store + Clone, K: KeyExtractor> RateLimitLayer<S, K, ProblemDocument> {
    /// Says how denials are spelled; as the client's `Accept` asks unless set.
    #[must_use]
    pub fn denial_format(self, format: DenialFormat) -> Self {
        self.responder(ProblemDocument { format })
    }
}
