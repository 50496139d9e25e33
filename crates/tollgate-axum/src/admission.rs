//! Whether a request may go on.

use std::ops::ControlFlow;
use std::sync::Arc;

use http::request::Parts;
use tollgate_core::{Cost, Decision, Error, Limiter, Store};

use crate::key::{KeyExtractor, KeyResult, RequestKey};
use crate::layer::{Config, MissingKey};
use crate::refusal::Refusal;

/// Whether a request may go on.
#[derive(Debug)]
pub(crate) enum Admission {
    /// It is not limited at all.
    Exempt,
    /// It was counted and may go on.
    Admitted,
    /// It may not.
    Refused(Refusal),
}

impl<S: Store + Clone, K: KeyExtractor> Config<S, K> {
    /// Judges a request without a future, if neither its key nor the store needs one.
    ///
    /// `None` means that nothing was done.
    pub(crate) fn admit_now(&self, parts: &Parts) -> Option<Admission> {
        let Some(cost) = self.cost_of(parts) else {
            return Some(Admission::Exempt);
        };
        let key = match self.identity(self.key.extract_now(parts)?) {
            ControlFlow::Continue(key) => key,
            ControlFlow::Break(admission) => return Some(admission),
        };
        let limiter = self.limiter(parts);
        let answer = limiter.hit_n_at_once(key.subject(), cost)?;
        Some(Self::conclude(answer))
    }

    /// Judges a request.
    pub(crate) async fn admit(&self, parts: &Parts) -> Admission {
        let Some(cost) = self.cost_of(parts) else {
            return Admission::Exempt;
        };
        let key = match self.identity(self.key.extract(parts).await) {
            ControlFlow::Continue(key) => key,
            ControlFlow::Break(admission) => return admission,
        };
        let limiter = self.limiter(parts);
        Self::conclude(limiter.hit_n(key, cost.get()).await)
    }

    /// What the request takes; `None` if it is exempt.
    fn cost_of(&self, parts: &Parts) -> Option<Cost> {
        let rules = &self.rules;
        let is_limited = |methods: &[_]| methods.contains(&parts.method);
        if !rules.methods.as_deref().is_none_or(is_limited) {
            return None;
        }
        if rules.skip.iter().any(|skip| skip(parts)) {
            return None;
        }
        match &rules.cost {
            None => Some(Cost::ONE),
            Some(cost) => Cost::new(cost(parts)).ok(),
        }
    }

    fn identity(&self, found: KeyResult) -> ControlFlow<Admission, RequestKey> {
        match found {
            Ok(Some(key)) => ControlFlow::Continue(key),
            Ok(None) => ControlFlow::Break(match self.rules.missing_key {
                MissingKey::Reject => Admission::Refused(Refusal::no_identity()),
                MissingKey::Skip => Admission::Exempt,
            }),
            Err(error) => ControlFlow::Break(Admission::Refused(Refusal::unknown_identity(&error))),
        }
    }

    fn limiter(&self, parts: &Parts) -> Arc<Limiter<S>> {
        self.limiters
            .limiter(&self.rules.limiter, &self.rules.scope, parts)
    }

    fn conclude(answer: Result<Decision<'_>, Error>) -> Admission {
        match answer {
            Ok(decision) if decision.is_allowed() => Admission::Admitted,
            Ok(decision) => Admission::Refused(Refusal::Denied(decision.to_report())),
            Err(error) => Admission::Refused(Refusal::unanswered(&error)),
        }
    }
}
