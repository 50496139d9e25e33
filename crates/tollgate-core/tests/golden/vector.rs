//! A vector as it stands in its file.

use serde::Deserialize;
use tollgate_core::{Algorithm, Policy};

use crate::time::Micros;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Vector {
    pub(crate) name: String,
    pub(crate) why: Vec<String>,
    pub(crate) policy: PolicyText,
    #[serde(default = "default_start")]
    pub(crate) start_us: u64,
    pub(crate) steps: Vec<Step>,
}

fn default_start() -> u64 {
    1_000_000_000_000_000
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PolicyText {
    algorithm: String,
    quota: String,
    utc_offset_minutes: Option<i32>,
}

impl PolicyText {
    pub(crate) fn policy(&self) -> Policy {
        let algorithm: Algorithm = self.algorithm.parse().expect("a known algorithm");
        let quota = self.quota.parse().expect("a legal quota");
        let policy = Policy::new("golden", algorithm, quota).expect("a legal policy");
        match self.utc_offset_minutes {
            None => policy,
            Some(minutes) => policy.aligned(minutes).expect("a legal alignment"),
        }
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Step {
    pub(crate) at: String,
    pub(crate) op: Kind,
    #[serde(default = "one")]
    pub(crate) cost: u64,
    #[serde(default = "one")]
    pub(crate) times: u64,
    pub(crate) receipt: Option<String>,
    pub(crate) actual: Option<u64>,
    pub(crate) policy: Option<PolicyText>,
    pub(crate) existed: Option<bool>,
    pub(crate) expect: Option<Expected>,
}

fn one() -> u64 {
    1
}

#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Kind {
    Hit,
    Peek,
    Settle,
    Reset,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Expected {
    pub(crate) allowed: bool,
    pub(crate) remaining: u64,
    pub(crate) retry_after: Option<Wait>,
    pub(crate) reset_after: Micros,
    #[serde(default)]
    pub(crate) delay: Micros,
}

/// A wait, or `"never"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(crate) enum Wait {
    Never,
    For(Micros),
}

impl TryFrom<String> for Wait {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        if text == "never" {
            return Ok(Self::Never);
        }
        Micros::try_from(text).map(Self::For)
    }
}
