#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod capability;
mod connection;
mod counter;
mod error;
mod key;
mod lane;
mod reply;
mod request;
mod script;
mod store;
#[cfg(test)]
mod together;

pub use connection::Connection;
pub use store::RedisStore;

#[cfg(feature = "deadpool")]
pub use deadpool_redis;
pub use redis;
pub use tollgate_core;
