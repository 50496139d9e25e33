//! The settings as they are written.

use std::num::NonZeroU8;

use serde::{Deserialize, Serialize};
use tollgate_core::{Algorithm, FailureMode, QuotaList};

use super::families::Families;
use super::timeout::Timeout;
use crate::key::{ForwardedHeader, Ipv6Prefix, TrustedProxies};

/// The settings as a file holds them, under these names.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename = "Settings")]
pub(super) struct Fields {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) limit: Option<QuotaList>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) algorithm: Option<Algorithm>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) prefix: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) headers: Option<Families>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) trusted_proxies: Option<TrustedProxies>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) trusted_hops: Option<NonZeroU8>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) forwarded_header: Option<ForwardedHeader>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) ipv6_prefix: Option<Ipv6Prefix>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) failure_mode: Option<FailureMode>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) timeout: Option<Timeout>,
}
