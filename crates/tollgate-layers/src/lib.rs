#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]
// A wrapper that leaves a method to its default silently drops what the store inside does better.
#![deny(clippy::missing_trait_methods)]

mod blocking;
mod breaker;
mod deny_cache;
mod fallback;
mod instrumented;
mod owned_key;
mod stack;
mod timeout;

pub use blocking::Blocking;
pub use breaker::{Breaker, BreakerOptions, BreakerState};
pub use deny_cache::{DenyCache, DenyCacheOptions, MonotonicClock};
pub use fallback::{Fallback, Share};
pub use instrumented::{Instrumented, SubjectLogging, observe_memory};
pub use stack::Stack;
pub use timeout::Timeout;

/// What a store is called in errors, events and metrics unless it has been given a name.
const DEFAULT_NAME: &str = "store";
