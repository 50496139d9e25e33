//! Batches: several checks judged at one instant, all charged or none.

use crate::algorithm::{Op, Rule, State, Verdict};
use crate::decision::Source;
use crate::error::{Error, ErrorKind, Result};
use crate::key::Key;
use crate::limiter::FailureMode;
use crate::policy::Policy;
use crate::time::Timestamp;

/// One question: may this key, under this policy, do that?
#[derive(Clone, Copy, Debug)]
pub struct Check<'a> {
    /// Which counter.
    pub key: Key<'a>,
    /// Under which rule.
    pub policy: &'a Policy,
    /// What is asked.
    pub op: Op,
}

/// Checks that a store judges at one instant.
///
/// - If every [`Op::Hit`] in it is admitted, all of them are charged; if one is denied, none is.
/// - An [`Op::Peek`] never charges and never stands in the way of the hits.
/// - An [`Op::Settle`] is carried out whatever becomes of the hits.
///
/// No key stands in a batch twice.
#[derive(Clone, Copy, Debug)]
pub struct Batch<'a> {
    checks: &'a [Check<'a>],
    at: Option<Timestamp>,
    failure_mode: Option<FailureMode>,
    charged_by: Source,
}

impl<'a> Batch<'a> {
    /// The most checks one batch may hold, so that no batch keeps a store for long.
    pub const MAX_CHECKS: usize = 64;

    /// A batch of `checks`, judged by the store's own clock.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`] if there is no check, if there are more than [`MAX_CHECKS`](Self::MAX_CHECKS), or if
    /// a key stands there twice.
    pub fn new(checks: &'a [Check<'a>]) -> Result<Self> {
        if checks.is_empty() || checks.len() > Self::MAX_CHECKS {
            return Err(Error::new(
                ErrorKind::InvalidInput,
                format!(
                    "a batch holds 1 to {} checks, not {}",
                    Self::MAX_CHECKS,
                    checks.len()
                ),
            ));
        }
        for (index, check) in checks.iter().enumerate() {
            if checks[..index]
                .iter()
                .any(|earlier| earlier.key == check.key)
            {
                return Err(Error::new(
                    ErrorKind::InvalidInput,
                    format!(
                        "the key {:?} stands in one batch twice; add up its costs",
                        check.key
                    ),
                ));
            }
        }
        Ok(Self {
            checks,
            at: None,
            failure_mode: None,
            charged_by: Source::Store,
        })
    }

    /// A batch of one check, which cannot be wrong.
    #[must_use]
    #[inline]
    pub const fn of_one(check: &'a Check<'a>) -> Self {
        Self {
            checks: std::slice::from_ref(check),
            at: None,
            failure_mode: None,
            charged_by: Source::Store,
        }
    }

    /// Judges at `at` instead of by the store's own clock: for tests and for replaying traffic.
    ///
    /// A store may refuse: [`Capabilities::virtual_time`](crate::Capabilities::virtual_time) tells.
    #[must_use]
    #[inline]
    pub const fn at(self, at: Option<Timestamp>) -> Self {
        Self { at, ..self }
    }

    /// Says what the limiter will answer for a check whose policy says nothing, should the store fail.
    ///
    /// A store takes no notice: it is for wrappers that stand in for one.
    #[must_use]
    #[inline]
    pub const fn on_failure(self, failure_mode: Option<FailureMode>) -> Self {
        Self {
            failure_mode,
            ..self
        }
    }

    /// Says who charged what the batch settles; the store unless set.
    ///
    /// A store takes no notice: it is for wrappers that charge in place of one.
    #[must_use]
    #[inline]
    pub const fn charged_by(self, source: Source) -> Self {
        Self {
            charged_by: source,
            ..self
        }
    }

    /// Who charged what the batch settles.
    #[must_use]
    pub const fn settles_charges_of(&self) -> Source {
        self.charged_by
    }

    /// What is to be answered for `check` should the store fail; `None` if neither policy nor limiter say.
    #[must_use]
    pub fn failure_mode(&self, check: &Check<'_>) -> Option<FailureMode> {
        check.policy.failure_mode().or(self.failure_mode)
    }

    /// The checks, in the order of the answers.
    #[must_use]
    #[inline]
    pub const fn checks(&self) -> &'a [Check<'a>] {
        self.checks
    }

    /// The instant to judge at; `None` is the store's own clock.
    #[must_use]
    #[inline]
    pub const fn instant(&self) -> Option<Timestamp> {
        self.at
    }

    /// Judges the whole batch on the states of its keys, in the order of the checks, and changes them where it says so.
    ///
    /// This is the specification of a batch, as [`Rule::step`](crate::Rule::step) is of a check.
    ///
    /// # Panics
    /// If there are fewer states than checks.
    pub fn step(&self, states: &mut [Option<State>], now: Timestamp) -> Verdicts {
        assert!(states.len() >= self.checks.len(), "every check has a state");
        if let [check] = self.checks {
            return Verdicts::one(now, check.policy.rule().step(&mut states[0], now, check.op));
        }
        let admitted = self
            .checks
            .iter()
            .zip(&mut *states)
            .all(|(check, state)| match check.op {
                Op::Hit(cost) => check
                    .policy
                    .rule()
                    .step(state, now, Op::Peek(cost))
                    .is_allowed(),
                Op::Peek(_) | Op::Settle(_) => true,
            });
        let verdicts = self.checks.iter().zip(states).map(|(check, state)| {
            let rule = check.policy.rule();
            match check.op {
                Op::Hit(cost) if !admitted => {
                    rule.rewind(state, now);
                    rule.step(state, now, Op::Peek(cost))
                }
                op => rule.step(state, now, op),
            }
        });
        Verdicts::many(now, verdicts.collect())
    }
}

/// A store's answers to one batch, in the order of its checks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdicts {
    at: Timestamp,
    source: Source,
    allowed: bool,
    list: List,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum List {
    One(Verdict),
    Many {
        verdicts: Box<[Verdict]>,
        /// One word, since they are rare and every answer is as wide as the widest.
        rules: Option<Box<Substitutes>>,
    },
}

/// The rules that checks were judged by, where they are not the policies' own.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Substitutes(Box<[Rule]>);

impl Verdicts {
    /// The answer to a batch of one; no heap is touched.
    #[must_use]
    #[inline]
    pub const fn one(at: Timestamp, verdict: Verdict) -> Self {
        Self {
            at,
            source: Source::Store,
            allowed: verdict.is_allowed(),
            list: List::One(verdict),
        }
    }

    /// The answers to a batch.
    #[must_use]
    pub fn many(at: Timestamp, verdicts: Box<[Verdict]>) -> Self {
        match *verdicts {
            [verdict] => Self::one(at, verdict),
            _ => Self {
                at,
                source: Source::Store,
                allowed: verdicts.iter().all(Verdict::is_allowed),
                list: List::Many {
                    verdicts,
                    rules: None,
                },
            },
        }
    }

    /// The answers of a stand-in that judged each check by another rule than its policy's own.
    ///
    /// What a [`Decision`](crate::Decision) says of limit, remaining and waiting follows from these rules.
    ///
    /// # Panics
    /// If there are not as many rules as verdicts.
    #[must_use]
    pub fn by_rules(at: Timestamp, verdicts: Box<[Verdict]>, rules: Box<[Rule]>) -> Self {
        assert_eq!(verdicts.len(), rules.len(), "every verdict has its rule");
        Self {
            at,
            source: Source::Fallback,
            allowed: verdicts.iter().all(Verdict::is_allowed),
            list: List::Many {
                verdicts,
                rules: Some(Box::new(Substitutes(rules))),
            },
        }
    }

    /// The rule that the check at `index` was judged by, where it is not its policy's own.
    #[must_use]
    pub fn rule(&self, index: usize) -> Option<&Rule> {
        match &self.list {
            List::One(_) => None,
            List::Many { rules, .. } => rules.as_ref()?.0.get(index),
        }
    }

    /// Says which part of the store answered.
    #[must_use]
    pub fn with_source(self, source: Source) -> Self {
        Self { source, ..self }
    }

    /// The reading of the clock that every check was judged by.
    #[must_use]
    #[inline]
    pub const fn at(&self) -> Timestamp {
        self.at
    }

    /// Which part of the store answered.
    #[must_use]
    pub const fn source(&self) -> Source {
        self.source
    }

    /// The answers, in the order of the checks.
    #[must_use]
    #[inline]
    pub fn as_slice(&self) -> &[Verdict] {
        match &self.list {
            List::One(verdict) => std::slice::from_ref(verdict),
            List::Many { verdicts, .. } => verdicts,
        }
    }

    /// Whether every check was admitted.
    #[must_use]
    #[inline]
    pub const fn is_allowed(&self) -> bool {
        self.allowed
    }
}
