//! The limiter as an application meets it, over stores that live in these tests.

mod answers;
mod at_once;
mod failures;
mod policies_together;
mod reservations;
mod stores;
#[cfg(feature = "tokio")]
mod waiting;
