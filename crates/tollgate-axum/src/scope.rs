//! Which routes share a counter.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use axum::extract::MatchedPath;
use http::Method;
use http::request::Parts;
use tollgate_core::{Limiter, Policies, Store};

/// How the scope of a request is found.
#[derive(Clone, Debug, Default)]
pub(crate) struct ScopeRule {
    /// The name to share; without one, each route counts by itself.
    pub(crate) name: Option<Arc<str>>,
    /// Whether each method counts by itself.
    pub(crate) by_method: bool,
}

impl ScopeRule {
    fn base<'a>(&'a self, own: &'a str, parts: &'a Parts) -> &'a str {
        if let Some(name) = &self.name {
            return name;
        }
        if own != Policies::DEFAULT_SCOPE {
            return own;
        }
        parts
            .extensions
            .get::<MatchedPath>()
            .map_or(Policies::DEFAULT_SCOPE, MatchedPath::as_str)
    }

    fn method_class(&self, method: &Method) -> usize {
        if !self.by_method {
            return EVERY_METHOD;
        }
        // A route for GET answers HEAD as well.
        let name = if method == Method::HEAD {
            Method::GET.as_str()
        } else {
            method.as_str()
        };
        let known = CLASSES.iter().position(|class| *class == name);
        known.unwrap_or(OTHER_METHODS)
    }
}

/// The scopes' prefixes. Methods that anybody can make up share the last one.
const CLASSES: [&str; 10] = [
    "", "GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT", "*",
];
const EVERY_METHOD: usize = 0;
const OTHER_METHODS: usize = CLASSES.len() - 1;

/// What was built for each scope that was met so far.
///
/// There are as many as there are route templates: what a client sends never becomes a scope.
#[derive(Debug)]
pub(crate) struct PerScope<T> {
    built: [RwLock<HashMap<Box<str>, T>>; CLASSES.len()],
}

impl<T> Default for PerScope<T> {
    fn default() -> Self {
        Self {
            built: Default::default(),
        }
    }
}

impl<T: Clone> PerScope<T> {
    /// More templates than any router has. What comes after is built anew for each request.
    const MOST: usize = 4096;

    /// What `build` makes of the request's scope, built once per scope.
    pub(crate) fn get(
        &self,
        rule: &ScopeRule,
        own: &str,
        parts: &Parts,
        build: impl FnOnce(&str) -> T,
    ) -> T {
        let base = rule.base(own, parts);
        let class = rule.method_class(&parts.method);
        let slot = &self.built[class];
        let known = slot.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(value) = known.get(base) {
            return value.clone();
        }
        drop(known);
        let value = if class == EVERY_METHOD {
            build(base)
        } else {
            build(&format!("{} {base}", CLASSES[class]))
        };
        let mut known = slot.write().unwrap_or_else(PoisonError::into_inner);
        if known.len() < Self::MOST {
            known.insert(base.into(), value.clone());
        }
        value
    }
}

/// The limiter of each scope.
pub(crate) type ScopedLimiters<S> = PerScope<Arc<Limiter<S>>>;

impl<S: Store + Clone> ScopedLimiters<S> {
    /// `limiter`, counting in the scope of the request.
    pub(crate) fn limiter(
        &self,
        limiter: &Limiter<S>,
        rule: &ScopeRule,
        parts: &Parts,
    ) -> Arc<Limiter<S>> {
        self.get(rule, limiter.policies().scope_name(), parts, |scope| {
            Arc::new(limiter.clone().scope(scope))
        })
    }
}
