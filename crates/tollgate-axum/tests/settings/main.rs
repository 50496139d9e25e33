//! Settings from files and from the environment.

#![cfg(feature = "settings")]
#![expect(
    clippy::unwrap_used,
    reason = "a failed unwrap is a failed test, with the place in the message"
)]

mod environment;
mod files;
mod pieces;
