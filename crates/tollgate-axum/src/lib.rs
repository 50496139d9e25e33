#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod key;

pub use key::{
    AsyncKey, IntoKey, Ipv6Prefix, Ipv6PrefixError, KeyError, KeyExtractor, KeyResult, PeerAddress,
    RequestKey, from_async_fn,
};
