//! What is done with every call, whatever the store inside.

use std::time::Duration;

use quanta::Instant;
use tollgate_core::{
    Batch, Capabilities, Check, Error, ErrorKind, FailureMode, Key, Op, PolicyDecision, Result,
    Source, Timestamp, Verdict, Verdicts,
};

use super::call::Call;
use super::health::Health;
use super::labels::{Outcome, Verb};
use super::log;
use super::meters::{Meters, PolicyMeters};
use super::subjects::{SubjectLogging, Words};

#[derive(Clone, Copy, Debug)]
pub(super) struct Settings {
    pub(super) name: &'static str,
    pub(super) label_scopes: bool,
    pub(super) time_in_process: bool,
    pub(super) log_denials: bool,
    pub(super) subjects: Option<SubjectLogging>,
    pub(super) steady: Duration,
}

/// Counts and logs the calls of one store.
#[derive(Debug)]
pub(super) struct Watch {
    pub(super) settings: Settings,
    pub(super) meters: Meters,
    health: Health,
}

impl Watch {
    pub(super) fn new(settings: Settings) -> Self {
        Self {
            settings,
            meters: Meters::new(settings.name, settings.label_scopes),
            health: Health::default(),
        }
    }

    /// Begins a call that may take its time.
    pub(super) fn begin(&self, verb: Verb, checks: &[Check<'_>]) -> Call<'_> {
        let span = log::span(self.settings.name, verb, checks);
        Call::begin(&self.meters, verb, span)
    }

    /// Whether more is wanted of a call in this process than to count it.
    #[inline]
    pub(super) fn in_detail(&self) -> bool {
        self.settings.time_in_process || log::wants_spans()
    }

    /// When a call in this process begins, if more is wanted than to count it.
    pub(super) fn start_in_process(&self) -> Option<Instant> {
        self.in_detail().then(Instant::now)
    }

    /// Notes how long a call in this process took.
    pub(super) fn took_in_process(&self, batch: &Batch<'_>, outcome: Outcome, elapsed: Duration) {
        let verb = Verb::of(batch);
        if self.settings.time_in_process
            && let Some(calls) = self.meters.calls()
        {
            calls.took(verb, elapsed);
        }
        // Nothing goes on inside that could belong to the span, so it is made when all is known.
        let span = log::span(self.settings.name, verb, batch.checks());
        log::close(&span, outcome, elapsed);
    }

    /// Notes the answer to one check that was at hand.
    #[inline]
    pub(super) fn at_hand(&self, check: &Check<'_>, at: Timestamp, verdict: Verdict) {
        let charged = verdict.is_allowed();
        let decide = |cost| PolicyDecision::from_verdict(check.policy, verdict, at, cost, charged);
        if let Some(calls) = self.meters.calls() {
            calls.answered(Source::Store);
            if let Op::Hit(cost) = check.op {
                self.count(check, &decide(cost), charged, Source::Store);
            }
        }
        if self.settings.log_denials
            && !charged
            && let Op::Hit(cost) = check.op
        {
            self.log_denial(check, &decide(cost));
        }
        self.served(Source::Store);
    }

    /// Notes the answer to a batch.
    pub(super) fn judged(
        &self,
        batch: &Batch<'_>,
        answer: &Result<Verdicts>,
        capabilities: Capabilities,
    ) -> Outcome {
        match answer {
            Ok(verdicts) if verdicts.as_slice().len() == batch.checks().len() => {
                self.verdicts(batch, verdicts);
                Outcome::of(verdicts)
            }
            // The limiter takes it for a failure.
            Ok(_) => {
                let error = Error::new(ErrorKind::Other, "not every check had an answer");
                self.error(batch, &error, capabilities);
                Outcome::Error
            }
            Err(error) => {
                self.error(batch, error, capabilities);
                Outcome::Error
            }
        }
    }

    fn verdicts(&self, batch: &Batch<'_>, verdicts: &Verdicts) {
        let source = verdicts.source();
        let mut answers = batch.checks().iter().zip(verdicts.as_slice());
        let charged = answers.all(|(check, verdict)| verdict.is_allowed() || !is_hit(check));
        let calls = self.meters.calls();
        if let Some(calls) = calls {
            calls.answered(source);
        }
        for (index, check) in batch.checks().iter().enumerate() {
            let Op::Hit(cost) = check.op else { continue };
            // A stand-in judges by a share of the quota: what is left and when to try again follow from that.
            let decision =
                PolicyDecision::from_verdicts(check.policy, verdicts, index, cost, charged);
            if calls.is_some() {
                self.count(check, &decision, charged, source);
            }
            if self.settings.log_denials && !decision.is_allowed() {
                self.log_denial(check, &decision);
            }
        }
        if source.is_degraded() {
            self.stood_in();
        } else {
            self.served(source);
        }
    }

    /// Counts what one policy said to a hit.
    #[inline]
    fn count(
        &self,
        check: &Check<'_>,
        decision: &PolicyDecision<'_>,
        charged: bool,
        source: Source,
    ) {
        let Some(meters) = self.meters.policy(check) else {
            return;
        };
        count_outcome(meters, decision, charged);
        if source == Source::Fallback {
            meters.fallback.increment(1);
        }
    }

    #[cold]
    fn log_denial(&self, check: &Check<'_>, decision: &PolicyDecision<'_>) {
        let Settings { name, subjects, .. } = self.settings;
        log::denied(name, &check.key, decision, subjects);
    }

    #[cold]
    fn error(&self, batch: &Batch<'_>, error: &Error, capabilities: Capabilities) {
        let answered =
            !error.kind().is_callers_fault() && (capabilities.fallback || !wants_fallback(batch));
        if let Some(calls) = self.meters.calls() {
            calls.failed(error.kind());
            for check in batch.checks().iter().filter(|check| is_hit(check)) {
                self.count_error(batch, check, answered);
            }
        }
        let asks = batch.checks().iter().any(is_enforced_question);
        let keys = || batch.checks().iter().map(|check| check.key).collect();
        self.failed(error, answered && asks, keys);
    }

    fn count_error(&self, batch: &Batch<'_>, check: &Check<'_>, answered: bool) {
        let Some(meters) = self.meters.policy(check) else {
            return;
        };
        meters.error.increment(1);
        if !answered || !is_enforced_question(check) {
            return;
        }
        match batch.failure_mode(check).unwrap_or_default() {
            FailureMode::Open => meters.open.increment(1),
            // Whoever stands in has failed as well, so the limiter denies.
            FailureMode::Closed | FailureMode::Fallback => meters.closed.increment(1),
        }
    }

    /// Notes the answer to a reset.
    pub(super) fn reset(&self, keys: &[Key<'_>], answer: &Result<u64>) -> Outcome {
        match answer {
            Ok(_) => {
                self.served(Source::Store);
                Outcome::Done
            }
            Err(error) => {
                if let Some(calls) = self.meters.calls() {
                    calls.failed(error.kind());
                }
                self.failed(error, false, || keys.to_vec());
                Outcome::Error
            }
        }
    }

    /// The store itself answered.
    #[inline]
    fn served(&self, source: Source) {
        // A remembered denial says nothing about the store.
        if !matches!(source, Source::Store | Source::NativeCounter) {
            return;
        }
        if let Some(recovery) = self.health.answered(self.settings.steady, Instant::now) {
            log::recovered(self.settings.name, recovery);
        }
    }

    /// Another answered in the store's place.
    #[cold]
    fn stood_in(&self) {
        let news = self.health.failed(None, true, Instant::now());
        if news.outage {
            log::stood_in(self.settings.name);
        }
    }

    /// Nobody answered. `degraded` says whether the limiter makes an answer of it.
    #[cold]
    fn failed<'k>(&self, error: &Error, degraded: bool, keys: impl FnOnce() -> Vec<Key<'k>>) {
        let news = self
            .health
            .failed(Some(error.kind()), degraded, Instant::now());
        if !news.outage && !news.permanent {
            return;
        }
        let Settings { name, subjects, .. } = self.settings;
        let words = Words {
            error,
            subjects,
            keys: &keys(),
        };
        if news.outage {
            log::outage(name, &words);
        }
        if news.permanent {
            log::permanent(name, &words);
        }
    }
}

/// Whether the limiter will refuse to make an answer of a failure: it asks for a stand-in.
fn wants_fallback(batch: &Batch<'_>) -> bool {
    let mut modes = batch.checks().iter().map(|check| batch.failure_mode(check));
    modes.any(|mode| mode == Some(FailureMode::Fallback))
}

#[inline]
const fn is_hit(check: &Check<'_>) -> bool {
    matches!(check.op, Op::Hit(_))
}

/// Whether the limiter's answer depends on this one: a policy in shadow mode has no part in it.
const fn is_enforced_question(check: &Check<'_>) -> bool {
    !matches!(check.op, Op::Settle(_)) && !check.policy.is_shadow()
}

#[inline]
fn count_outcome(meters: &PolicyMeters, decision: &PolicyDecision<'_>, charged: bool) {
    if charged {
        meters.allowed.increment(1);
        // Less than a fifth of the limit is less than that fifth rounded up, since units are whole.
        if decision.remaining() < decision.limit().div_ceil(5) {
            meters.near_limit.increment(1);
        }
    } else if decision.is_allowed() {
        meters.uncharged.increment(1);
    } else if decision.is_shadow() {
        meters.shadow_denied.increment(1);
        meters.shadow_denied_total.increment(1);
    } else if decision.retry_after().is_none() {
        meters.never.increment(1);
    } else {
        meters.denied.increment(1);
    }
}
