//! Connections that stay at hand for a moment after a statement.
//!
//! The pool hands out the connection that has been idle for the longest, and asks the server whether it is still there.
//! A lone caller would go round all of them, and find in none of the server's processes what the last hit has warmed up.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use sqlx::Postgres;
use sqlx::pool::PoolConnection;

/// How long a connection is kept while nobody asks.
pub(super) const KEPT_FOR: Duration = Duration::from_millis(5);

/// The connections that are kept, the one used last on top.
#[derive(Debug, Default)]
pub(super) struct Kept(Mutex<Vec<PoolConnection<Postgres>>>);

impl Kept {
    /// The one used last.
    pub(super) fn take(&self) -> Option<PoolConnection<Postgres>> {
        self.0.lock().pop()
    }

    /// Keeps `connection` until the result is dropped, unless somebody takes it before.
    pub(super) fn keep(self: &Arc<Self>, connection: PoolConnection<Postgres>) -> Keeping {
        self.0.lock().push(connection);
        Keeping(Some(Arc::clone(self)))
    }
}

/// There are at least as many of these as connections that are kept, so that none is kept for ever.
#[derive(Debug)]
pub(super) struct Keeping(Option<Arc<Kept>>);

impl Keeping {
    /// Goes on with the connection used last, if there is one left.
    pub(super) fn take(mut self) -> Option<PoolConnection<Postgres>> {
        self.0.take()?.take()
    }
}

impl Drop for Keeping {
    fn drop(&mut self) {
        let Some(kept) = &self.0 else {
            return;
        };
        // Not necessarily the one that came with this, which may be in use again.
        let oldest = {
            let mut kept = kept.0.lock();
            (!kept.is_empty()).then(|| kept.remove(0))
        };
        drop(oldest);
    }
}
