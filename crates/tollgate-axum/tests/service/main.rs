//! The layer as clients meet it: over real connections, in virtual time.

#![expect(
    clippy::unwrap_used,
    reason = "a failed unwrap is a failed test, with the place in the message"
)]

mod after;
mod failures;
mod handlers;
mod hostile;
mod keys;
mod limits;
mod log;
mod proxied;
mod refusals;
mod scopes;
mod server;
mod shaping;
mod stacks;
mod stores;
mod tiers;
mod towers;
