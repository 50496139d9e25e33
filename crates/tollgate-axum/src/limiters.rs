//! The limiters that a layer has built: one per tier and scope.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use http::request::Parts;
use tollgate_core::{Limiter, Policies, Store};

use crate::scope::{PerScope, ScopeRule};
use crate::shape::shaped;

type ScopedLimiters<S> = PerScope<Arc<Limiter<S>>>;

/// The limiters that a layer has built so far.
#[derive(Debug)]
pub(crate) struct Limiters<S> {
    own: ScopedLimiters<S>,
    /// By the address of the tier's policies, which the entry keeps alive.
    tiers: RwLock<HashMap<usize, Arc<OfTier<S>>>>,
}

#[derive(Debug)]
struct OfTier<S> {
    policies: Arc<Policies>,
    limiters: ScopedLimiters<S>,
}

impl<S> Default for Limiters<S> {
    fn default() -> Self {
        Self {
            own: PerScope::default(),
            tiers: RwLock::default(),
        }
    }
}

/// Where the limiter of a request comes from.
#[derive(Debug)]
pub(crate) struct Origin<'a, S> {
    pub(crate) limiter: &'a Limiter<S>,
    pub(crate) scope: &'a ScopeRule,
    pub(crate) max_delay: Option<Duration>,
}

impl<S: Store + Clone> Origin<'_, S> {
    fn build(&self, policies: &Policies, scope: &str) -> Arc<Limiter<S>> {
        let mut policies = policies.scope(scope);
        if policies.prefix_name() == Policies::DEFAULT_PREFIX {
            policies = policies.prefix(self.limiter.policies().prefix_name());
        }
        let policies = match self.max_delay {
            Some(max_delay) => shaped(&policies, max_delay),
            None => policies,
        };
        Arc::new(self.limiter.with_policies(policies))
    }
}

impl<S: Store + Clone> Limiters<S> {
    /// Tiers are few. Where they are built anew all the time, the old ones have to go some time.
    const MOST_TIERS: usize = 256;

    /// The layer's own limiter, counting in the scope of the request.
    pub(crate) fn own(&self, origin: &Origin<'_, S>, parts: &Parts) -> Arc<Limiter<S>> {
        let policies = origin.limiter.policies();
        self.own
            .get(origin.scope, policies.scope_name(), parts, |scope| {
                origin.build(policies, scope)
            })
    }

    /// The limiter of a tier, counting in the scope of the request.
    pub(crate) fn of_tier(
        &self,
        origin: &Origin<'_, S>,
        policies: &Arc<Policies>,
        parts: &Parts,
    ) -> Arc<Limiter<S>> {
        let OfTier { policies, limiters } = &*self.tier(policies);
        limiters.get(origin.scope, policies.scope_name(), parts, |scope| {
            origin.build(policies, scope)
        })
    }

    fn tier(&self, policies: &Arc<Policies>) -> Arc<OfTier<S>> {
        let address = Arc::as_ptr(policies).addr();
        let known = self.tiers.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(tier) = known.get(&address) {
            return Arc::clone(tier);
        }
        drop(known);
        let tier = Arc::new(OfTier {
            policies: Arc::clone(policies),
            limiters: PerScope::default(),
        });
        let mut known = self.tiers.write().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= Self::MOST_TIERS {
            known.clear();
        }
        Arc::clone(known.entry(address).or_insert(tier))
    }
}
