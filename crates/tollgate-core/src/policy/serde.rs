//! Policies in configuration files: a map of their parts.

use serde::de::{Deserialize, Deserializer, Error};
use serde::ser::{Serialize, SerializeStruct, Serializer};

use super::Policy;
use crate::algorithm::Algorithm;
use crate::limiter::FailureMode;
use crate::quota::Quota;

/// Writes the map that is read back. Needs the feature `serde`.
///
/// What is not set is left out, unless the format does not name its fields.
impl Serialize for Policy {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let keeps_unset = !serializer.is_human_readable();
        let offset = self.utc_offset_minutes;
        let failure_mode = self.failure_mode;
        let writes_offset = keeps_unset || offset.is_some();
        let writes_failure_mode = keeps_unset || failure_mode.is_some();
        let writes_shadow = keeps_unset || self.shadow;

        let optional = [writes_offset, writes_failure_mode, writes_shadow];
        let fields = 3 + optional.into_iter().map(usize::from).sum::<usize>();
        let mut map = serializer.serialize_struct("Policy", fields)?;
        map.serialize_field("name", self.name())?;
        map.serialize_field("algorithm", &self.algorithm)?;
        map.serialize_field("quota", &self.quota)?;
        if writes_offset {
            map.serialize_field("utc_offset_minutes", &offset)?;
        }
        if writes_failure_mode {
            map.serialize_field("on_failure", &failure_mode)?;
        }
        if writes_shadow {
            map.serialize_field("shadow", &self.shadow)?;
        }
        map.end()
    }
}

/// Reads a map with `name`, `algorithm` and `quota`; `utc_offset_minutes` aligns a fixed window to the calendar,
/// `on_failure` is `"open"`, `"closed"` or `"fallback"`, and `shadow` is `true` for a policy that is not enforced.
/// Needs the feature `serde`.
///
/// Refuses what [`Policy::new`] and [`Policy::aligned`] refuse, with the same errors, and unknown or repeated fields.
///
/// ```
/// use tollgate_core::{Algorithm, Policy};
///
/// let json = r#"{"name":"login","algorithm":"sliding-log","quota":"5/15 minutes"}"#;
/// let login: Policy = serde_json::from_str(json)?;
/// assert_eq!(login, Policy::new("login", Algorithm::SlidingLog, "5/15 minutes".parse()?)?);
/// assert_eq!(serde_json::to_string(&login)?, json);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
impl<'de> Deserialize<'de> for Policy {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let fields = Fields::deserialize(deserializer)?;
        fields.policy().map_err(D::Error::custom)
    }
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields, rename = "Policy")]
struct Fields {
    name: String,
    algorithm: Algorithm,
    quota: Quota,
    #[serde(default)]
    utc_offset_minutes: Option<i32>,
    #[serde(default)]
    on_failure: Option<FailureMode>,
    #[serde(default)]
    shadow: bool,
}

impl Fields {
    fn policy(self) -> crate::Result<Policy> {
        let mut policy = Policy::new(&self.name, self.algorithm, self.quota)?;
        if let Some(minutes) = self.utc_offset_minutes {
            policy = policy.aligned(minutes)?;
        }
        if let Some(mode) = self.on_failure {
            policy = policy.on_failure(mode);
        }
        if self.shadow {
            policy = policy.shadow();
        }
        Ok(policy)
    }
}
