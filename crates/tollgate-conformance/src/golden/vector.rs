//! A vector as it stands in its file, and as it is once it has been checked.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;
use tollgate_core::{Algorithm, Cost, Policy, Quota, Timestamp};

use crate::golden::offset::Offset;
use crate::testbed::START;

/// What is wrong with a file of vectors.
#[derive(Debug, thiserror::Error)]
pub(crate) enum VectorError {
    #[error("not a list of vectors: {0}")]
    Shape(#[from] serde_json::Error),
    #[error("vector {vector}: {reason}")]
    Vector { vector: String, reason: String },
    #[error("vector {vector}, step {step}: {reason}")]
    Step {
        vector: String,
        step: usize,
        reason: String,
    },
}

/// A story about one key with every answer worked out by hand.
#[derive(Debug)]
pub(crate) struct Vector {
    pub(crate) name: String,
    pub(crate) steps: Vec<Step>,
}

#[derive(Debug)]
pub(crate) struct Step {
    pub(crate) at: Timestamp,
    /// The policy in force.
    pub(crate) policy: Policy,
    pub(crate) action: Action,
    pub(crate) times: u32,
}

#[derive(Debug)]
pub(crate) enum Action {
    Hit {
        cost: Cost,
        /// The name to keep the receipt under.
        receipt: Option<String>,
        expect: Expected,
    },
    Peek {
        cost: Cost,
        expect: Expected,
    },
    Settle {
        receipt: String,
        actual: u64,
        expect: Expected,
    },
    Reset {
        existed: bool,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Expected {
    pub(crate) allowed: bool,
    pub(crate) remaining: u64,
    /// `None` if it never fits; zero if it is admitted.
    pub(crate) retry_after: Option<Duration>,
    pub(crate) reset_after: Duration,
    pub(crate) delay: Duration,
}

impl Vector {
    /// The vectors of one file.
    pub(crate) fn read_all(text: &str) -> Result<Vec<Self>, VectorError> {
        let raw: Vec<RawVector> = serde_json::from_str(text)?;
        raw.into_iter().map(Self::check).collect()
    }

    fn check(raw: RawVector) -> Result<Self, VectorError> {
        let name = raw.name;
        let refuse = |reason: String| VectorError::Vector {
            vector: name.clone(),
            reason,
        };
        let snake_case = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        if name.is_empty() || !name.chars().all(snake_case) {
            return Err(refuse("a name is a sentence in snake case".to_owned()));
        }
        if raw.why.iter().all(|line| line.trim().is_empty()) {
            return Err(refuse("the derivation is missing".to_owned()));
        }
        if raw.steps.is_empty() {
            return Err(refuse("there are no steps".to_owned()));
        }
        let mut policy = raw.policy.check().map_err(refuse)?;
        let mut steps = Vec::with_capacity(raw.steps.len());
        let mut receipts = Vec::new();
        for (index, step) in raw.steps.into_iter().enumerate() {
            let step = step
                .check(raw.start_us, &mut policy, &mut receipts)
                .map_err(|reason| VectorError::Step {
                    vector: name.clone(),
                    step: index + 1,
                    reason,
                })?;
            steps.push(step);
        }
        Ok(Self { name, steps })
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawVector {
    name: String,
    why: Vec<String>,
    policy: RawPolicy,
    #[serde(default = "default_start")]
    start_us: u64,
    steps: Vec<RawStep>,
}

const fn default_start() -> u64 {
    START
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawPolicy {
    algorithm: String,
    quota: String,
    utc_offset_minutes: Option<i32>,
}

impl RawPolicy {
    fn check(self) -> Result<Policy, String> {
        let algorithm: Algorithm = self.algorithm.parse().map_err(|error| format!("{error}"))?;
        let quota: Quota = self.quota.parse().map_err(|error| format!("{error}"))?;
        let policy = Policy::new("kit", algorithm, quota);
        match self.utc_offset_minutes {
            None => policy,
            Some(minutes) => policy.and_then(|policy| policy.aligned(minutes)),
        }
        .map_err(|error| error.to_string())
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawStep {
    at: Offset,
    op: RawOp,
    cost: Option<u64>,
    times: Option<u32>,
    receipt: Option<String>,
    actual: Option<u64>,
    policy: Option<RawPolicy>,
    existed: Option<bool>,
    expect: Option<RawExpected>,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum RawOp {
    Hit,
    Peek,
    Settle,
    Reset,
}

impl RawStep {
    fn check(
        mut self,
        start: u64,
        policy: &mut Policy,
        receipts: &mut Vec<String>,
    ) -> Result<Step, String> {
        if let Some(changed) = self.policy.take() {
            let changed = changed.check()?;
            if changed.algorithm().family() != policy.algorithm().family() {
                return Err("a policy of another family has another key".to_owned());
            }
            *policy = changed;
        }
        let at = start
            .checked_add_signed(self.at.0)
            .ok_or("the instant lies before the epoch")?;
        Ok(Step {
            at: Timestamp::from_micros(at).map_err(|error| error.to_string())?,
            policy: policy.clone(),
            times: self.times.take().unwrap_or(1),
            action: self.action(receipts)?,
        })
    }

    fn action(mut self, receipts: &mut Vec<String>) -> Result<Action, String> {
        let action = match self.op {
            RawOp::Hit => Action::Hit {
                cost: self.cost()?,
                receipt: self
                    .receipt
                    .take()
                    .inspect(|name| receipts.push(name.clone())),
                expect: self.expected()?,
            },
            RawOp::Peek => Action::Peek {
                cost: self.cost()?,
                expect: self.expected()?,
            },
            RawOp::Settle => Action::Settle {
                receipt: self
                    .receipt
                    .take()
                    .filter(|name| receipts.contains(name))
                    .ok_or("a settle names the receipt of an earlier hit")?,
                actual: self
                    .actual
                    .take()
                    .ok_or("a settle says what was used, in `actual`")?,
                expect: self.expected()?,
            },
            RawOp::Reset => Action::Reset {
                existed: self
                    .existed
                    .take()
                    .ok_or("a reset says whether the key `existed`")?,
            },
        };
        if let Action::Hit {
            receipt: Some(_),
            expect,
            ..
        } = &action
            && !expect.allowed
        {
            return Err("a hit that is denied has no receipt".to_owned());
        }
        self.nothing_left_over()?;
        Ok(action)
    }

    fn cost(&mut self) -> Result<Cost, String> {
        Cost::new(self.cost.take().unwrap_or(1)).map_err(|error| error.to_string())
    }

    fn expected(&mut self) -> Result<Expected, String> {
        self.expect.take().ok_or("`expect` is missing")?.check()
    }

    /// Fields that mean nothing with this operation would be believed to be checked.
    fn nothing_left_over(&self) -> Result<(), String> {
        let fields = BTreeMap::from([
            ("cost", self.cost.is_some()),
            ("receipt", self.receipt.is_some()),
            ("actual", self.actual.is_some()),
            ("existed", self.existed.is_some()),
            ("expect", self.expect.is_some()),
        ]);
        match fields.iter().find(|(_, there)| **there) {
            None => Ok(()),
            Some((field, _)) => Err(format!("`{field}` has no meaning with this operation")),
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawExpected {
    allowed: bool,
    remaining: u64,
    retry_after: Option<String>,
    reset_after: Offset,
    delay: Option<Offset>,
}

impl RawExpected {
    fn check(self) -> Result<Expected, String> {
        let span = |offset: Offset| offset.span().ok_or("a span is not negative");
        let retry_after = match (self.allowed, self.retry_after.as_deref()) {
            (true, None) => Some(Duration::ZERO),
            (true, Some(_)) => return Err("what is admitted has no `retry_after`".to_owned()),
            (false, None) => return Err("what is denied has a `retry_after`".to_owned()),
            (false, Some("never")) => None,
            (false, Some(text)) => Some(span(Offset::parse(text)?)?),
        };
        Ok(Expected {
            allowed: self.allowed,
            remaining: self.remaining,
            retry_after,
            reset_after: span(self.reset_after)?,
            delay: self.delay.map(span).transpose()?.unwrap_or_default(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(step: &str) -> String {
        let text = format!(
            r#"[{{"name":"a","why":["b"],"policy":{{"algorithm":"gcra","quota":"1/s"}},"steps":[{step}]}}]"#
        );
        Vector::read_all(&text).unwrap_err().to_string()
    }

    #[test]
    fn a_step_that_would_check_less_than_it_seems_is_refused() {
        let expect = r#""expect":{"allowed":true,"remaining":0,"reset_after":"1s"}"#;
        for (step, why) in [
            (r#"{"at":"0","op":"hit"}"#.to_owned(), "`expect` is missing"),
            (format!(r#"{{"at":"0","op":"hit","existed":true,{expect}}}"#), "`existed` has no meaning"),
            (format!(r#"{{"at":"0","op":"reset","existed":true,{expect}}}"#), "`expect` has no meaning"),
            (format!(r#"{{"at":"0","op":"settle","receipt":"r","actual":0,{expect}}}"#), "an earlier hit"),
            (format!(r#"{{"at":"0","op":"hit","cost":0,{expect}}}"#), "a cost is at least 1"),
            (format!(r#"{{"at":"0","op":"hit","policy":{{"algorithm":"fixed-window","quota":"1/s"}},{expect}}}"#), "another family"),
            (
                r#"{"at":"0","op":"hit","expect":{"allowed":false,"remaining":0,"reset_after":"1s"}}"#.to_owned(),
                "what is denied has a `retry_after`",
            ),
            (format!(r#"{{"at":"0","op":"hit","spelled":"wrong",{expect}}}"#), "unknown field"),
        ] {
            let message = refusal(&step);
            assert!(message.contains(why), "{message:?} should say {why:?}");
        }
    }
}
