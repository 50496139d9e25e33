#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod denial;
mod headers;

pub use denial::{Denial, DenialFormat, DenialReason};
pub use headers::{Headers, PartitionKey, QuotaUnit};
