//! The response of a limited service, when it is ready.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use http::Response;
use pin_project_lite::pin_project;

use crate::headers::Advertised;

type Boxed<B, E> = Pin<Box<dyn Future<Output = Result<Response<B>, E>> + Send>>;

pin_project! {
    /// The response of a [`RateLimitService`](crate::RateLimitService): that of the service inside, or a refusal.
    ///
    /// Nothing is boxed for a request that was judged at once.
    #[must_use = "futures do nothing unless polled"]
    pub struct ResponseFuture<F, B, E> {
        #[pin]
        state: State<F, B, E>,
    }
}

pin_project! {
    #[project = StateProjection]
    enum State<F, B, E> {
        /// The service inside is at work.
        Serving { #[pin] inner: F, advertised: Option<Advertised> },
        /// The answer was there at once.
        Refused { response: Option<Response<B>> },
        /// Judging takes a future, or what comes after does; the service inside is called from it.
        Boxed { rest: Boxed<B, E> },
    }
}

impl<F, B, E> ResponseFuture<F, B, E> {
    pub(crate) const fn serving(inner: F, advertised: Option<Advertised>) -> Self {
        Self {
            state: State::Serving { inner, advertised },
        }
    }

    pub(crate) const fn refused(response: Response<B>) -> Self {
        Self {
            state: State::Refused {
                response: Some(response),
            },
        }
    }

    pub(crate) const fn boxed(rest: Boxed<B, E>) -> Self {
        Self {
            state: State::Boxed { rest },
        }
    }
}

impl<F, B, E> Future for ResponseFuture<F, B, E>
where
    F: Future<Output = Result<Response<B>, E>>,
{
    type Output = Result<Response<B>, E>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match self.project().state.project() {
            StateProjection::Serving { inner, advertised } => {
                let mut response = ready!(inner.poll(context))?;
                if let Some(advertised) = advertised.take() {
                    advertised.write(&mut response);
                }
                Poll::Ready(Ok(response))
            }
            StateProjection::Refused { response } => Poll::Ready(Ok(response
                .take()
                .expect("a future is not polled after it was ready"))),
            StateProjection::Boxed { rest } => rest.as_mut().poll(context),
        }
    }
}

impl<F, B, E> fmt::Debug for ResponseFuture<F, B, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseFuture").finish_non_exhaustive()
    }
}
