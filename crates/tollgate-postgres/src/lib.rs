#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod error;
mod flight;
mod group;
mod hits;
mod options;
mod question;
mod schema;
mod statement;
mod store;
mod sweep;

pub use options::{PostgresStoreBuilder, SynchronousCommit};
pub use schema::Schema;
pub use sqlx;
pub use store::PostgresStore;
pub use sweep::Sweeper;
pub use tollgate_core;
