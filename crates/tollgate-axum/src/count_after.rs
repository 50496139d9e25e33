//! Charging by the response: what counts is known only when the handler has answered.

use std::fmt;
use std::sync::Arc;

use http::StatusCode;
use http::response::Parts;

/// What a response means for its client's counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// It counts.
    Charge,
    /// It does not count.
    Free,
    /// It does not count, and everything counted before is forgotten.
    Reset,
}

/// Charges a request by its response: only failed logins, say.
///
/// A request is let through while the limit has room for it, and refused after that; what it takes, if anything, is
/// decided by [`Outcome`]. There are two ways to do that:
///
/// - **Looking first**, the default: the limiter is peeked at before and charged after. A request that turns out to be
///   free is never in anybody's way. But requests that are under way at the same time do not see one another: all
///   of them may pass a limit that has room for one, and one that is cancelled while it is under way counts for nothing.
/// - **[Reserving](Self::reserving)**: the limiter is charged before, and what turns out to be free is given back. Never
///   are more under way or counted than the limit allows, and a request that is cancelled stays counted. The price
///   is that free requests take room while they are under way.
///
/// Guard secrets by reserving, as [`lockout`](Self::lockout) does; look first where most requests are free.
#[derive(Clone)]
pub struct CountAfter {
    judge: Arc<dyn Fn(&Parts) -> Outcome + Send + Sync>,
    reserves: bool,
    /// Whether the success of a request that only looks, such as one for a page, forgets what was counted.
    resets_on_safe: bool,
}

impl CountAfter {
    /// Does with each response what `judge` says.
    #[must_use]
    pub fn by(judge: impl Fn(&Parts) -> Outcome + Send + Sync + 'static) -> Self {
        Self {
            judge: Arc::new(judge),
            reserves: false,
            resets_on_safe: true,
        }
    }

    /// Charges for responses of which `counts` is true.
    #[must_use]
    pub fn when(counts: impl Fn(&Parts) -> bool + Send + Sync + 'static) -> Self {
        Self::by(move |response| {
            if counts(response) {
                Outcome::Charge
            } else {
                Outcome::Free
            }
        })
    }

    /// Charges for responses that blame the client: 400 to 499, but for 429, which some limiter gave.
    #[must_use]
    pub fn failures() -> Self {
        Self::when(|response| {
            response.status.is_client_error() && response.status != StatusCode::TOO_MANY_REQUESTS
        })
    }

    /// Forgets what was counted when a response is free and succeeds: 200 to 399.
    #[must_use]
    pub fn reset_on_success(self) -> Self {
        let judge = self.judge;
        Self {
            judge: Arc::new(move |response| match judge(response) {
                Outcome::Free if succeeds(response.status) => Outcome::Reset,
                outcome => outcome,
            }),
            ..self
        }
    }

    /// Locks a client out after so many failures as the limit allows, and forgets them at its first success.
    ///
    /// [Failures](Self::failures) count, successes [reset](Self::reset_on_success), others do neither. It
    /// [reserves](Self::reserving), so attempts made at the same time are no way around it.
    ///
    /// The success of a safe method (RFC 9110, section 9.2.1: `GET`, `HEAD`, `OPTIONS`, `TRACE`) is free and resets nothing.
    /// A route that shows a form by `GET` and takes it by `POST` would otherwise forget every guess as soon as the form is
    /// asked for again. Where `GET` is the attempt itself, [`reset_on_success`](Self::reset_on_success) resets by any method:
    /// `CountAfter::failures().reset_on_success().reserving()`.
    ///
    /// A success forgets the failures of the whole key. Where clients are told apart by their addresses alone, whoever has an
    /// account of their own can begin anew by logging in to it; count the account that is guessed at as well.
    #[must_use]
    pub fn lockout() -> Self {
        Self {
            resets_on_safe: false,
            ..Self::failures().reset_on_success().reserving()
        }
    }

    /// Charges first and gives back what turns out to be free.
    #[must_use]
    pub fn reserving(self) -> Self {
        Self {
            reserves: true,
            ..self
        }
    }

    pub(crate) const fn reserves(&self) -> bool {
        self.reserves
    }

    /// What `response` means, to a request of a safe method or of another one.
    pub(crate) fn outcome(&self, response: &Parts, is_safe: bool) -> Outcome {
        match (self.judge)(response) {
            Outcome::Reset if is_safe && !self.resets_on_safe => Outcome::Free,
            outcome => outcome,
        }
    }
}

fn succeeds(status: StatusCode) -> bool {
    status.is_success() || status.is_redirection()
}

impl fmt::Debug for CountAfter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CountAfter")
            .field("reserves", &self.reserves)
            .finish_non_exhaustive()
    }
}
