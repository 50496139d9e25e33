//! The layer as clients meet it: over real connections, in virtual time.

#![expect(
    clippy::unwrap_used,
    reason = "a failed unwrap is a failed test, with the place in the message"
)]

mod keys;
mod limits;
mod scopes;
mod server;
