//! What a layer was told.

use std::sync::Arc;

use http::Method;
use http::request::Parts;
use tollgate_core::{Limiter, Store};

use crate::key::PeerAddress;
use crate::layer::MissingKey;
use crate::scope::{ScopeRule, ScopedLimiters};

/// A number of units, from a request's head.
pub(crate) type CostFn = Arc<dyn Fn(&Parts) -> u64 + Send + Sync>;
/// Yes or no, from a request's head.
pub(crate) type SkipFn = Arc<dyn Fn(&Parts) -> bool + Send + Sync>;

/// What a layer was told, and what it has built of it so far.
#[derive(Clone)]
pub(crate) struct Config<S, K> {
    pub(crate) rules: Rules<S>,
    pub(crate) limiters: Arc<ScopedLimiters<S>>,
    pub(crate) key: K,
}

/// What is the same for every kind of key.
#[derive(Clone)]
pub(crate) struct Rules<S> {
    pub(crate) limiter: Limiter<S>,
    pub(crate) missing_key: MissingKey,
    pub(crate) scope: ScopeRule,
    pub(crate) cost: Option<CostFn>,
    pub(crate) skip: Vec<SkipFn>,
    pub(crate) methods: Option<Box<[Method]>>,
}

impl<S: Store + Clone> Config<S, PeerAddress> {
    pub(crate) fn new(limiter: Limiter<S>) -> Self {
        Self {
            rules: Rules {
                limiter,
                missing_key: MissingKey::default(),
                scope: ScopeRule::default(),
                cost: None,
                skip: Vec::new(),
                methods: None,
            },
            limiters: Arc::default(),
            key: PeerAddress::new(),
        }
    }
}

impl<S, K> Config<S, K> {
    pub(crate) fn with_key<L>(self, key: L) -> Config<S, L> {
        Config {
            rules: self.rules,
            limiters: self.limiters,
            key,
        }
    }
}
