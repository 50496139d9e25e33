//! The limiter as an application meets it, over stores that live in these tests.

mod answers;
mod at_once;
mod failures;
mod policies_together;
mod reservations;
mod shadow;
mod shadow_counts;
mod shadow_trouble;
mod stores;
#[cfg(feature = "tokio")]
mod waiting;
