#![doc = include_str!("../README.md")]

mod builder;
mod clerk;
mod clock;
mod entry;
mod hand;
mod kinds;
mod overflow;
mod pace;
mod population;
mod shard;
mod stats;
mod store;
mod stricter;
mod sync;
mod table;

pub use builder::MemoryStoreBuilder;
pub use clock::TscClock;
pub use stats::Stats;
pub use store::MemoryStore;
pub use tollgate_core;
pub use tollgate_core::*;
