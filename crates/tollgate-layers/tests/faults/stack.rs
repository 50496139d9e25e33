//! The usual stack.

use std::time::Duration;

use tollgate_core::{SharedStore, Store};
use tollgate_layers::{Breaker, DenyCache, Fallback, Instrumented, Share, Timeout};

/// The longest that a store is waited for.
pub(crate) const BOUND: Duration = Timeout::<SharedStore>::DEFAULT;
/// How many processes there are supposed to be.
const PROCESSES: u32 = 4;

/// What one process admits of a limit while the store is away.
pub(crate) fn share_of(limit: u64) -> u64 {
    limit / u64::from(PROCESSES)
}

/// A store and what is around it.
#[derive(Clone, Debug)]
pub(crate) struct Stack {
    /// What is around it, in the figures; its limiters' prefix, too.
    pub(crate) name: &'static str,
    pub(crate) store: SharedStore,
}

/// What an application has, each wrapper as it comes.
pub(crate) fn usual(store: impl Store) -> Stack {
    let share = Share::of(1, PROCESSES).unwrap();
    let store = Fallback::new(Breaker::new(Timeout::new(store)), share);
    Stack {
        name: "usual",
        store: SharedStore::new(Instrumented::new(DenyCache::new(store))),
    }
}

/// A timeout and a stand-in alone: every call meets the fault.
pub(crate) fn exposed(store: impl Store) -> Stack {
    let share = Share::of(1, PROCESSES).unwrap();
    Stack {
        name: "no breaker",
        store: SharedStore::new(Fallback::new(Timeout::new(store), share)),
    }
}
