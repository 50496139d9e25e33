//! The usual stack.

use std::time::Duration;

use tollgate_core::{Result, SharedStore, Store};
use tollgate_layers::{DenyCacheOptions, Fallback, Share, Timeout};

/// The longest that a store is waited for.
pub(crate) const BOUND: Duration = Timeout::<SharedStore>::DEFAULT;

/// What one process admits of a limit while the store is away.
pub(crate) const fn share_of(limit: u64) -> u64 {
    limit / 4
}

/// A store and what is around it.
#[derive(Clone, Debug)]
pub(crate) struct Stack {
    /// What is around it, in the figures; its limiters' prefix, too.
    pub(crate) name: &'static str,
    pub(crate) store: SharedStore,
}

/// What an application has.
pub(crate) fn usual(store: impl Store) -> Stack {
    Stack {
        name: "usual",
        store: guarded(store).unwrap(),
    }
}

/// As the guide shows it.
fn guarded(store: impl Store) -> Result<SharedStore> {
    let store = tollgate_layers::Stack::around(store)
        .fallback(Share::of(1, 4)?)
        .deny_cache(DenyCacheOptions::new())
        .build()?;
    Ok(store)
}

/// A timeout and a stand-in alone: every call meets the fault.
pub(crate) fn exposed(store: impl Store) -> Stack {
    let share = Share::of(1, 4).unwrap();
    Stack {
        name: "no breaker",
        store: SharedStore::new(Fallback::new(Timeout::new(store), share)),
    }
}
