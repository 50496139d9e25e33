//! Who a request is counted for.

#![expect(
    clippy::unwrap_used,
    reason = "a failed unwrap is a failed test, with the place in the message"
)]

mod bounds;
mod closures;
mod counting;
mod elements;
mod forwarded;
mod identities;
mod peer;
mod properties;
mod support;
mod trust;
