//! What callers saw, counted.

use std::collections::BTreeMap;
use std::time::Duration;

use tollgate_core::{Decision, Source};

/// What the callers of one failure mode saw.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) sent: u64,
    /// Answers that nobody gave: the failure mode decided. It denied these,
    pub(crate) denied_unjudged: u64,
    /// and admitted those.
    pub(crate) admitted_unjudged: u64,
    pub(crate) errors: BTreeMap<String, u64>,
    pub(crate) longest: Duration,
    pub(crate) subjects: BTreeMap<String, Subject>,
}

/// What came of the hits on one subject.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Subject {
    pub(crate) hits: u64,
    pub(crate) admitted: u64,
    /// Answers that were not the store's, nor from a memory of its denial.
    pub(crate) degraded: u64,
    /// Errors after which nobody knows whether the hit was charged.
    pub(crate) unknown: u64,
}

impl Tally {
    pub(crate) fn count(&mut self, subject: &str, decision: &Decision<'_>, took: Duration) {
        let subject = self.subjects.entry(subject.to_owned()).or_default();
        self.sent += 1;
        subject.hits += 1;
        subject.degraded += u64::from(decision.is_degraded());
        subject.admitted += u64::from(decision.is_allowed());
        self.longest = self.longest.max(took);
        if decision.source() == Source::FailureMode {
            self.denied_unjudged += u64::from(!decision.is_allowed());
            self.admitted_unjudged += u64::from(decision.is_allowed());
        }
        if let Some(error) = decision.error() {
            subject.unknown += u64::from(error.may_have_charged());
            let kind = if error.to_string().contains("the breaker is open") {
                "breaker open".to_owned()
            } else {
                error.kind().to_string()
            };
            *self.errors.entry(kind).or_default() += 1;
        }
    }

    pub(crate) fn add(&mut self, other: Self) {
        self.sent += other.sent;
        self.denied_unjudged += other.denied_unjudged;
        self.admitted_unjudged += other.admitted_unjudged;
        self.longest = self.longest.max(other.longest);
        for (kind, count) in other.errors {
            *self.errors.entry(kind).or_default() += count;
        }
        for (name, seen) in other.subjects {
            let subject = self.subjects.entry(name).or_default();
            subject.hits += seen.hits;
            subject.admitted += seen.admitted;
            subject.degraded += seen.degraded;
            subject.unknown += seen.unknown;
        }
    }

    pub(crate) fn admitted(&self) -> u64 {
        self.sum(|subject| subject.admitted)
    }

    pub(crate) fn degraded(&self) -> u64 {
        self.sum(|subject| subject.degraded)
    }

    fn sum(&self, part: impl Fn(&Subject) -> u64) -> u64 {
        self.subjects.values().map(part).sum()
    }

    /// What was admitted beyond `limit`, over all subjects.
    pub(crate) fn over(&self, limit: u64) -> u64 {
        self.sum(|subject| subject.admitted.saturating_sub(limit))
    }

    /// What was admitted beyond `limit` of the one subject that got most.
    pub(crate) fn most_over(&self, limit: u64) -> u64 {
        let over = |subject: &Subject| subject.admitted.saturating_sub(limit);
        self.subjects.values().map(over).max().unwrap_or_default()
    }
}
