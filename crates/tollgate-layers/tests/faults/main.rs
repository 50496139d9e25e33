//! What callers see while the store of their limiter is slow, down or lying: real servers, mistreated under load.
//!
//! Each run prints its figures as a row of the table in `docs/when-the-store-is-down.md`:
//! `cargo test -p tollgate-layers --test faults -- --nocapture`.
#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on fails where it stands"
)]

mod backend;
mod clock;
mod everywhere;
mod failover;
mod guide;
mod load;
mod names;
mod open_breaker;
mod pools;
mod postgres;
mod redis;
mod run;
mod shutdown;
mod stack;
mod tally;
