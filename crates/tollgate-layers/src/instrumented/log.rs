//! Spans and events.

use std::fmt;
use std::time::Duration;

use tollgate_core::{Check, Key, PolicyDecision};
use tracing::Span;
use tracing::field::{Empty, display};

use super::health::Recovery;
use super::labels::{Outcome, Verb, kind_name};
use super::subjects::{Shown, SubjectLogging, Words};

/// Names of policies, with commas between them.
struct Names<'a>(&'a [Check<'a>]);

impl fmt::Display for Names<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, check) in self.0.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            write!(f, "{comma}{}", check.policy.name())?;
        }
        Ok(())
    }
}

/// Whether anybody wants the span of a call.
#[inline]
pub(super) fn wants_spans() -> bool {
    tracing::enabled!(tracing::Level::DEBUG)
}

/// The span of a call; of a reset, `checks` are none.
pub(super) fn span(store: &'static str, verb: Verb, checks: &[Check<'_>]) -> Span {
    let verb = verb.name();
    let policies = display(Names(checks));
    tracing::debug_span!("store_call", store, verb, %policies, outcome = Empty, elapsed_us = Empty)
}

/// Writes into a span how the call ended.
pub(super) fn close(span: &Span, outcome: Outcome, elapsed: Duration) {
    let micros = u64::try_from(elapsed.as_micros()).unwrap_or(u64::MAX);
    span.record("outcome", outcome.name());
    span.record("elapsed_us", micros);
}

/// A policy denied a hit, or would have.
pub(super) fn denied(
    store: &'static str,
    key: &Key<'_>,
    decision: &PolicyDecision<'_>,
    subjects: Option<SubjectLogging>,
) {
    let policy = decision.policy().name();
    let scope = key.space().scope();
    let shadow = decision.is_shadow();
    let retry_after = decision.retry_after();
    match subjects {
        None => tracing::debug!(store, scope, policy, shadow, ?retry_after, "denied"),
        Some(how) => {
            let subject = Shown { key, how };
            tracing::debug!(store, scope, policy, shadow, ?retry_after, %subject, "denied");
        }
    }
}

/// An outage begins with an error.
#[cold]
pub(super) fn outage(store: &'static str, words: &Words<'_>) {
    let kind = kind_name(words.error.kind());
    tracing::warn!(store, kind, error = %words, "the store does not answer; until it does, the failure mode decides");
}

/// An outage begins with the answer of a stand-in.
#[cold]
pub(super) fn stood_in(store: &'static str) {
    tracing::warn!(
        store,
        "the store does not answer; until it does, another judges in its place"
    );
}

/// The store answers again.
#[cold]
pub(super) fn recovered(store: &'static str, recovery: Recovery) {
    let Recovery { lasted, answers } = recovery;
    tracing::info!(store, ?lasted, answers, "the store answers again");
}

/// An error that does not pass by itself, the first of its kind.
#[cold]
pub(super) fn permanent(store: &'static str, words: &Words<'_>) {
    let kind = kind_name(words.error.kind());
    tracing::error!(store, kind, error = %words, "the store's trouble does not pass by itself; somebody has to look at it");
}

/// Policies are told apart no longer.
#[cold]
pub(super) fn too_many_policies(store: &'static str, policy: &'static str) {
    tracing::warn!(
        store,
        policy,
        "there are more policies than metrics can tell apart; from now on new ones are counted together"
    );
}
