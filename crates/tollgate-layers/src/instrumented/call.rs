//! A call that is under way.

use quanta::Instant;
use tracing::Span;

use super::labels::{Outcome, Verb};
use super::log;
use super::meters::Meters;

/// A call that may take its time, and may be given up by its caller.
pub(super) struct Call<'w> {
    meters: &'w Meters,
    verb: Verb,
    span: Span,
    started: Option<Instant>,
}

impl<'w> Call<'w> {
    pub(super) fn begin(meters: &'w Meters, verb: Verb, span: Span) -> Self {
        let wanted = meters.calls().is_some() || !span.is_disabled();
        Self {
            meters,
            verb,
            span,
            started: wanted.then(Instant::now),
        }
    }

    pub(super) const fn span(&self) -> &Span {
        &self.span
    }

    /// The call has been answered.
    pub(super) fn end(mut self, outcome: Outcome) {
        let Some(started) = self.started.take() else {
            return;
        };
        let elapsed = started.elapsed();
        if let Some(calls) = self.meters.calls() {
            calls.took(self.verb, elapsed);
        }
        log::close(&self.span, outcome, elapsed);
    }
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        let Some(started) = self.started else { return };
        if let Some(calls) = self.meters.calls() {
            calls.abandoned(self.verb);
        }
        log::close(&self.span, Outcome::Abandoned, started.elapsed());
    }
}
