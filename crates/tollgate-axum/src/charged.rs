//! Receipts: correcting a charge once the real cost is known.

use std::convert::Infallible;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

use axum_core::extract::{FromRequestParts, OptionalFromRequestParts};
use axum_core::response::{IntoResponse, Response};
use http::StatusCode;
use http::request::Parts;
use tollgate_core::{Limiter, Receipt, Report, Result, Store};

type Settlement = Pin<Box<dyn Future<Output = Result<Report>> + Send>>;
type Settle = Box<dyn FnOnce(u64) -> Settlement + Send>;

/// What a request was charged, for the handler to correct: an extractor.
///
/// For work whose cost is known only afterwards, such as the tokens of a language model. The layer charges an estimate
/// ([`cost`](crate::RateLimitLayer::cost)), the handler works and settles:
///
/// ```
/// use axum::{Router, routing::post};
/// use tollgate_axum::{Charged, RateLimitLayer};
/// use tollgate_memory::{Limiter, MemoryStore, Quota};
///
/// async fn complete(charged: Charged, prompt: String) -> String {
///     let (answer, tokens) = ask_the_model(&prompt).await;
///     if let Err(error) = charged.settle(tokens).await {
///         // The estimate stays charged.
///         eprintln!("{error}");
///     }
///     answer
/// }
/// # async fn ask_the_model(prompt: &str) -> (String, u64) { (prompt.to_owned(), 7) }
///
/// let limit = RateLimitLayer::new(Limiter::new(MemoryStore::new(), "10000/minute".parse::<Quota>()?))
///     .cost(|_| 500)
///     .with_receipt();
/// let app: Router = Router::new().route("/complete", post(complete)).route_layer(limit);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// One that is dropped leaves the estimate charged. It may outlive the response: settle in the task that streams the
/// body, say. The response's headers tell of the estimate.
///
/// Where layers with receipts are stacked, it settles with all of them. A layer that let the request pass without charging it
/// (the store was away and the [`FailureMode`](tollgate_core::FailureMode) admits, or all that there is to charge is in shadow
/// mode and used up) has nothing to correct: settling succeeds and has no report of it.
#[must_use = "the estimate stays charged unless it is settled"]
pub struct Charged {
    settle: Vec<Settle>,
}

impl Charged {
    /// Corrects the charge to `actual` units; zero gives all of it back.
    ///
    /// What was used on top of the estimate is charged even past the limit, and paid by waiting. The reports are those of
    /// the layers, outermost first.
    ///
    /// # Errors
    /// The store's own trouble: then it is unknown whether the charge was corrected. Every layer's charge is tried all
    /// the same, and the first trouble is reported.
    pub async fn settle(self, actual: u64) -> Result<Vec<Report>> {
        let mut reports = Vec::with_capacity(self.settle.len());
        for settle in self.settle {
            reports.push(settle(actual).await);
        }
        reports.into_iter().collect()
    }
}

impl fmt::Debug for Charged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Charged").finish_non_exhaustive()
    }
}

/// The receipts in a request's extensions; `None` once a handler has taken them.
#[derive(Clone, Default)]
struct Receipts(Arc<Mutex<Option<Vec<Settle>>>>);

/// Leaves a receipt for the handler, if only to say that the request was admitted and nothing is to be settled.
pub(crate) fn leave<S: Store>(
    receipt: Option<Receipt>,
    limiter: Arc<Limiter<S>>,
    parts: &mut Parts,
) {
    let settle = receipt.map(|receipt| -> Settle {
        Box::new(move |actual| Box::pin(async move { limiter.settle(receipt, actual).await }))
    });
    let receipts = parts.extensions.get_or_insert_default::<Receipts>();
    let mut receipts = receipts.0.lock().unwrap_or_else(PoisonError::into_inner);
    receipts.get_or_insert_default().extend(settle);
}

/// There is no receipt for the handler to take.
///
/// Either no layer around it leaves one ([`with_receipt`](crate::RateLimitLayer::with_receipt)), or the request is exempt, or
/// another extractor has taken it: a charge is settled once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "there is no charge to settle: no layer leaves a receipt, the request is exempt, or the receipt was taken before; \
     use `with_receipt` on the layer, and take an `Option<Charged>` where requests may be exempt"
)]
pub struct NothingCharged;

impl IntoResponse for NothingCharged {
    fn into_response(self) -> Response {
        tracing::error!("{self}");
        StatusCode::INTERNAL_SERVER_ERROR.into_response()
    }
}

impl Charged {
    fn take(parts: &Parts) -> Option<Self> {
        let receipts = parts.extensions.get::<Receipts>()?;
        let mut receipts = receipts.0.lock().unwrap_or_else(PoisonError::into_inner);
        receipts.take().map(|settle| Self { settle })
    }
}

impl<St: Sync> FromRequestParts<St> for Charged {
    type Rejection = NothingCharged;

    async fn from_request_parts(parts: &mut Parts, _state: &St) -> Result<Self, NothingCharged> {
        Self::take(parts).ok_or(NothingCharged)
    }
}

impl<St: Sync> OptionalFromRequestParts<St> for Charged {
    type Rejection = Infallible;

    async fn from_request_parts(
        parts: &mut Parts,
        _state: &St,
    ) -> Result<Option<Self>, Infallible> {
        Ok(Self::take(parts))
    }
}
