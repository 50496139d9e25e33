//! Every wrapper around a store that passes the conformance kit passes it too. To add one, add a test of one line.

mod support;

use support::kit::{Outages, passes_the_kit};
use tollgate_layers::{Breaker, DenyCache, Fallback, Instrumented, Share, Timeout};

#[test]
fn a_breaker_passes_the_kit() {
    passes_the_kit(Outages::AreErrors, Breaker::new);
}

#[test]
fn a_timeout_passes_the_kit() {
    passes_the_kit(Outages::AreErrors, Timeout::new);
}

#[test]
fn a_breaker_around_a_timeout_passes_the_kit() {
    passes_the_kit(Outages::AreErrors, |store| {
        Breaker::new(Timeout::new(store))
    });
}

#[test]
fn a_deny_cache_passes_the_kit() {
    passes_the_kit(Outages::AreErrors, DenyCache::new);
}

#[test]
fn a_fallback_passes_the_kit() {
    passes_the_kit(Outages::AreAnswered, |store| {
        Fallback::new(store, Share::WHOLE)
    });
}

#[test]
fn an_instrumented_store_passes_the_kit() {
    passes_the_kit(Outages::AreErrors, Instrumented::new);
}
