//! What a layer was told.

use std::sync::Arc;
use std::time::Duration;

use http::Method;
use http::request::Parts;
use tollgate_core::{Limiter, Store};

use crate::count_after::CountAfter;
use crate::headers::Headers;
use crate::key::PeerAddress;
use crate::layer::MissingKey;
use crate::limiters::{Limiters, Origin};
use crate::outage::Outage;
use crate::respond::ProblemDocument;
use crate::scope::ScopeRule;
use crate::tier::TierRule;

/// A number of units, from a request's head.
pub(crate) type CostFn = Arc<dyn Fn(&Parts) -> u64 + Send + Sync>;
/// Yes or no, from a request's head.
pub(crate) type SkipFn = Arc<dyn Fn(&Parts) -> bool + Send + Sync>;

/// What a layer was told, and what it has built of it so far.
#[derive(Clone)]
pub(crate) struct Config<S, K, R> {
    pub(crate) rules: Rules<S>,
    pub(crate) built: Arc<Built<S>>,
    pub(crate) key: K,
    pub(crate) responder: R,
}

/// What is the same for every kind of key and answer.
#[derive(Clone)]
pub(crate) struct Rules<S> {
    pub(crate) limiter: Limiter<S>,
    pub(crate) missing_key: MissingKey,
    pub(crate) scope: ScopeRule,
    pub(crate) tier: TierRule,
    pub(crate) cost: Option<CostFn>,
    pub(crate) skip: Vec<SkipFn>,
    pub(crate) methods: Option<Box<[Method]>>,
    pub(crate) charging: Charging,
    pub(crate) max_delay: Option<Duration>,
    pub(crate) headers: Headers,
}

/// When a request is charged.
#[derive(Clone, Debug, Default)]
pub(crate) enum Charging {
    /// Before it goes on.
    #[default]
    Before,
    /// Before it goes on, for the handler to correct.
    WithReceipt,
    /// By its response.
    After(CountAfter),
}

/// What all services of a layer share.
#[derive(Debug)]
pub(crate) struct Built<S> {
    pub(crate) limiters: Limiters<S>,
    pub(crate) outage: Outage,
}

impl<S> Default for Built<S> {
    fn default() -> Self {
        Self {
            limiters: Limiters::default(),
            outage: Outage::default(),
        }
    }
}

impl<S: Store + Clone> Config<S, PeerAddress, ProblemDocument> {
    pub(crate) fn new(limiter: Limiter<S>) -> Self {
        Self {
            rules: Rules {
                limiter,
                missing_key: MissingKey::default(),
                scope: ScopeRule::default(),
                tier: TierRule::default(),
                cost: None,
                skip: Vec::new(),
                methods: None,
                charging: Charging::default(),
                max_delay: None,
                headers: Headers::default(),
            },
            built: Arc::default(),
            key: PeerAddress::new(),
            responder: ProblemDocument::default(),
        }
    }
}

impl<S, K, R> Config<S, K, R> {
    pub(crate) fn with_key<L>(self, key: L) -> Config<S, L, R> {
        Config {
            rules: self.rules,
            built: self.built,
            key,
            responder: self.responder,
        }
    }

    pub(crate) fn with_responder<T>(self, responder: T) -> Config<S, K, T> {
        Config {
            rules: self.rules,
            built: self.built,
            key: self.key,
            responder,
        }
    }

    pub(crate) fn origin(&self) -> Origin<'_, S> {
        Origin {
            limiter: &self.rules.limiter,
            scope: &self.rules.scope,
            max_delay: self.rules.max_delay,
        }
    }
}
