//! Denials answered from memory: the same answers as the store's, hardly any calls of it, and nothing overlooked.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

mod against_the_store;
mod attack;
mod forgetting;
mod memory;
mod stores;
mod time;
