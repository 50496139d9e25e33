//! Names, units and meanings of the metrics.

use metrics::{Recorder, Unit};

pub(super) const REQUESTS: &str = "tollgate_requests_total";
pub(super) const NEAR_LIMIT: &str = "tollgate_near_limit_total";
pub(super) const SHADOW_DENIED: &str = "tollgate_shadow_denied_total";
pub(super) const DEGRADED: &str = "tollgate_degraded_total";
pub(super) const ANSWERS: &str = "tollgate_answers_total";
pub(super) const ERRORS: &str = "tollgate_errors_total";
pub(super) const DURATION: &str = "tollgate_call_duration_seconds";
pub(super) const ABANDONED: &str = "tollgate_calls_abandoned_total";

/// Tells `recorder` what each metric of a store means.
pub(super) fn describe(recorder: &dyn Recorder) {
    let counters = [
        (REQUESTS, "hits by policy and what became of them"),
        (
            NEAR_LIMIT,
            "admitted hits that left less than a fifth of the limit",
        ),
        (
            SHADOW_DENIED,
            "hits that a policy in shadow mode would have denied",
        ),
        (
            DEGRADED,
            "hits answered without the store that should have judged them",
        ),
        (
            ANSWERS,
            "answers to hits, peeks and settlements by who gave them",
        ),
        (
            ERRORS,
            "calls that the store could not answer, by kind of error",
        ),
        (
            ABANDONED,
            "calls that their caller dropped before they were answered",
        ),
    ];
    for (name, meaning) in counters {
        recorder.describe_counter(name.into(), Some(Unit::Count), meaning.into());
    }
    recorder.describe_histogram(
        DURATION.into(),
        Some(Unit::Seconds),
        "how long the store took for a call".into(),
    );
}
