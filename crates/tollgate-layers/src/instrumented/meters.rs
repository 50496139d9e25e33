//! Handles of the metrics facade, fetched once for each store and policy.

use std::sync::OnceLock;
use std::time::Duration;

use metrics::{Counter, Histogram, Recorder};
use tollgate_core::{Check, ErrorKind, Source};

use super::labels::{KINDS, SOURCES, Verb, kind_place, source_place};
use super::recorder::{counter, histogram, with_installed};
use super::table::Table;
use super::{log, names};

/// Everything that is counted for one store.
pub(super) struct Meters {
    store: &'static str,
    label_scopes: bool,
    calls: OnceLock<CallMeters>,
    policies: Table<PolicyMeters>,
    /// Of policies that came when the table was full.
    rest: OnceLock<PolicyMeters>,
}

/// The policy and the scope that stand for those that had no room.
const REST: &str = "(other)";

impl Meters {
    pub(super) fn new(store: &'static str, label_scopes: bool) -> Self {
        Self {
            store,
            label_scopes,
            calls: OnceLock::new(),
            policies: Table::new(),
            rest: OnceLock::new(),
        }
    }

    /// The handles of the store; `None` while no recorder is installed.
    #[inline]
    pub(super) fn calls(&self) -> Option<&CallMeters> {
        match self.calls.get() {
            Some(calls) => Some(calls),
            None => self.fetch_calls(),
        }
    }

    /// The handles of a check's policy; `None` while no recorder is installed.
    #[inline]
    pub(super) fn policy(&self, check: &Check<'_>) -> Option<&PolicyMeters> {
        let policy = check.policy.name();
        let scope = if self.label_scopes {
            check.key.space().scope()
        } else {
            ""
        };
        match self.policies.get(scope, policy) {
            Some(meters) => Some(meters),
            None => self.fetch_policy(scope, policy),
        }
    }

    #[inline(never)]
    fn fetch_calls(&self) -> Option<&CallMeters> {
        let fetched = with_installed(|recorder| {
            names::describe(recorder);
            CallMeters::fetch(recorder, self.store)
        })?;
        Some(self.calls.get_or_init(|| fetched))
    }

    #[cold]
    #[inline(never)]
    fn fetch_policy(&self, scope: &str, policy: &str) -> Option<&PolicyMeters> {
        let fetch = |recorder: &dyn Recorder, scope, policy| {
            let scope = self.label_scopes.then_some(scope);
            PolicyMeters::fetch(recorder, self.store, scope, policy)
        };
        if let Some(rest) = self.rest.get() {
            return Some(rest);
        }
        let fetched = with_installed(|recorder| fetch(recorder, scope, policy))?;
        if let Some(meters) = self.policies.insert(scope, policy, fetched) {
            return Some(meters);
        }
        let fetched = with_installed(|recorder| fetch(recorder, REST, REST))?;
        if self.rest.set(fetched).is_ok() {
            log::too_many_policies(self.store, REST);
        }
        self.rest.get()
    }
}

impl std::fmt::Debug for Meters {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Meters")
            .field("store", &self.store)
            .finish_non_exhaustive()
    }
}

/// What is counted for the calls of one store.
pub(super) struct CallMeters {
    store: &'static str,
    answers: [Counter; SOURCES.len()],
    errors: [Counter; KINDS.len()],
    abandoned: [Counter; Verb::ALL.len()],
    /// Fetched when there is a first sample, so that verbs nobody uses have no empty histograms.
    durations: [OnceLock<Histogram>; Verb::ALL.len()],
}

impl CallMeters {
    fn fetch(recorder: &dyn Recorder, store: &'static str) -> Self {
        let one = |name, key, value| counter(recorder, name, &[("store", store), (key, value)]);
        Self {
            store,
            answers: SOURCES.map(|source| one(names::ANSWERS, "source", source)),
            errors: KINDS.map(|kind| one(names::ERRORS, "kind", kind)),
            abandoned: Verb::ALL.map(|verb| one(names::ABANDONED, "verb", verb.name())),
            durations: Default::default(),
        }
    }

    #[inline]
    pub(super) fn answered(&self, source: Source) {
        self.answers[source_place(source)].increment(1);
    }

    pub(super) fn failed(&self, kind: ErrorKind) {
        self.errors[kind_place(kind)].increment(1);
    }

    pub(super) fn abandoned(&self, verb: Verb) {
        self.abandoned[verb as usize].increment(1);
    }

    pub(super) fn took(&self, verb: Verb, duration: Duration) {
        let slot = &self.durations[verb as usize];
        if let Some(histogram) = slot.get().or_else(|| self.fetch_histogram(slot, verb)) {
            // The facade takes seconds as a float; nothing is decided by it.
            histogram.record(duration.as_secs_f64());
        }
    }

    #[cold]
    fn fetch_histogram<'h>(
        &self,
        slot: &'h OnceLock<Histogram>,
        verb: Verb,
    ) -> Option<&'h Histogram> {
        let labels = [("store", self.store), ("verb", verb.name())];
        let fetched = with_installed(|recorder| histogram(recorder, names::DURATION, &labels))?;
        Some(slot.get_or_init(|| fetched))
    }
}

/// What is counted for the hits of one policy.
pub(super) struct PolicyMeters {
    pub(super) allowed: Counter,
    pub(super) uncharged: Counter,
    pub(super) denied: Counter,
    pub(super) never: Counter,
    pub(super) shadow_denied: Counter,
    pub(super) error: Counter,
    pub(super) near_limit: Counter,
    pub(super) shadow_denied_total: Counter,
    pub(super) fallback: Counter,
    pub(super) open: Counter,
    pub(super) closed: Counter,
}

impl PolicyMeters {
    fn fetch(
        recorder: &dyn Recorder,
        store: &'static str,
        scope: Option<&str>,
        policy: &str,
    ) -> Self {
        let one = |name, own: Option<(&'static str, &'static str)>| {
            let mut labels: Vec<(&'static str, &str)> = vec![("store", store)];
            labels.extend(scope.map(|scope| ("scope", scope)));
            labels.push(("policy", policy));
            labels.extend(own);
            counter(recorder, name, &labels)
        };
        let outcome = |outcome| one(names::REQUESTS, Some(("outcome", outcome)));
        let mode = |mode| one(names::DEGRADED, Some(("mode", mode)));
        Self {
            allowed: outcome("allowed"),
            uncharged: outcome("uncharged"),
            denied: outcome("denied"),
            never: outcome("never"),
            shadow_denied: outcome("shadow_denied"),
            error: outcome("error"),
            near_limit: one(names::NEAR_LIMIT, None),
            shadow_denied_total: one(names::SHADOW_DENIED, None),
            fallback: mode("fallback"),
            open: mode("open"),
            closed: mode("closed"),
        }
    }
}
