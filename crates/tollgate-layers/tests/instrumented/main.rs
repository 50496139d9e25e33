//! What an instrumented store counts, times and logs.
#![expect(
    clippy::unwrap_used,
    reason = "a helper of a test that fails should stop it"
)]

mod errors;
mod events;
mod labels;
mod outcomes;
mod recorders;
mod subjects;
mod support;
mod timing;
