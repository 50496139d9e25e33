//! Which routes share a counter.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use axum::extract::MatchedPath;
use http::Method;
use http::request::Parts;
use tollgate_core::Policies;

/// How the scope of a request is found.
#[derive(Clone, Debug, Default)]
pub(crate) struct ScopeRule {
    /// The name to share; without one, each route counts by itself.
    pub(crate) name: Option<Arc<str>>,
    /// Whether each method counts by itself.
    pub(crate) by_method: bool,
}

impl ScopeRule {
    /// The scope without the method; `own` is the scope that the policies bring.
    fn base<'a>(&'a self, own: &'a str, parts: &'a Parts) -> &'a str {
        if let Some(name) = &self.name {
            return name;
        }
        if own != Policies::DEFAULT_SCOPE {
            return own;
        }
        let template = parts.extensions.get::<MatchedPath>();
        template.map_or(Policies::DEFAULT_SCOPE, MatchedPath::as_str)
    }

    /// The place of the method's name in [`METHODS`].
    fn class(&self, method: &Method) -> usize {
        if !self.by_method {
            return EVERY_METHOD;
        }
        // A route for GET answers HEAD as well.
        let name = if method == Method::HEAD {
            Method::GET.as_str()
        } else {
            method.as_str()
        };
        let known = METHODS.iter().position(|known| *known == name);
        known.unwrap_or(OTHER_METHODS)
    }
}

/// What stands before a scope. Methods that anybody can make up share the last one.
const METHODS: [&str; 10] = [
    "", "GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT", "*",
];
const EVERY_METHOD: usize = 0;
const OTHER_METHODS: usize = METHODS.len() - 1;

/// What was built for each scope that was met so far.
///
/// There are as many as there are route templates: what a client sends never becomes a scope.
#[derive(Debug)]
pub(crate) struct PerScope<T> {
    built: [RwLock<HashMap<Box<str>, T>>; METHODS.len()],
}

impl<T> Default for PerScope<T> {
    fn default() -> Self {
        Self {
            built: Default::default(),
        }
    }
}

impl<T: Clone> PerScope<T> {
    /// More templates than a router has. What comes after is built anew for each request.
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
        let class = rule.class(&parts.method);
        let slot = &self.built[class];
        let known = slot.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(value) = known.get(base) {
            return value.clone();
        }
        drop(known);
        let value = if class == EVERY_METHOD {
            build(base)
        } else {
            build(&format!("{} {base}", METHODS[class]))
        };
        let mut known = slot.write().unwrap_or_else(PoisonError::into_inner);
        if known.len() < Self::MOST {
            known.insert(base.into(), value.clone());
        }
        value
    }
}
