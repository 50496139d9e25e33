//! Who a request is counted for.

#![expect(
    clippy::unwrap_used,
    reason = "a failed unwrap is a failed test, with the place in the message"
)]

mod closures;
mod forwarded;
mod peer;
mod support;
