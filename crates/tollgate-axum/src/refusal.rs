//! Answers in the place of the service inside.

use bytes::Bytes;
use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderValue, Response, StatusCode};
use tollgate_core::{Error, Report};

use crate::key::KeyError;

/// Why a request does not go on.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// The limiter said no.
    Denied(Report),
    /// Nobody could be asked. The cause is in the log, not in the answer.
    Failed,
}

impl Refusal {
    #[cold]
    pub(crate) fn no_identity() -> Self {
        tracing::error!(
            "a request is refused: nothing in it tells who sent it; use another key, or say what becomes of such \
             requests with `on_missing_key`"
        );
        Self::Failed
    }

    #[cold]
    pub(crate) fn unknown_identity(error: &KeyError) -> Self {
        tracing::error!(
            error = error as &dyn std::error::Error,
            "a request is refused: who sent it cannot be told"
        );
        Self::Failed
    }

    #[cold]
    pub(crate) fn unanswered(error: &Error) -> Self {
        tracing::error!(
            error = error as &dyn std::error::Error,
            "a request is refused: the limiter cannot be asked like this"
        );
        Self::Failed
    }

    /// The answer.
    pub(crate) fn into_response(self) -> Response<Bytes> {
        match self {
            Self::Denied(report) => denied(&report),
            Self::Failed => plain(
                StatusCode::INTERNAL_SERVER_ERROR,
                "the rate limiter failed\n",
            ),
        }
    }
}

fn denied(report: &Report) -> Response<Bytes> {
    let mut response = plain(StatusCode::TOO_MANY_REQUESTS, "too many requests\n");
    if let Some(wait) = report.retry_after {
        let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
        response
            .headers_mut()
            .insert(RETRY_AFTER, HeaderValue::from(seconds.max(1)));
    }
    response
}

fn plain(status: StatusCode, text: &'static str) -> Response<Bytes> {
    let mut response = Response::new(Bytes::from_static(text.as_bytes()));
    *response.status_mut() = status;
    response.headers_mut().insert(
        CONTENT_TYPE,
        HeaderValue::from_static("text/plain; charset=utf-8"),
    );
    response
}
