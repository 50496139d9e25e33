//! The recipes under `examples/`, as they are shipped, over real connections and in a time that tests move.

#![expect(
    clippy::unwrap_used,
    reason = "a failed unwrap is a failed test, with the place in the message"
)]

mod burst_and_sustained;
mod email_per_recipient;
mod guide;
mod login_lockout;
mod quota_and_unlock;
mod readme;
#[path = "../service/server.rs"]
#[expect(dead_code, reason = "other tests use the rest")]
mod server;
mod support;
mod tenant_from_body;
mod token_budget;
mod worker;
