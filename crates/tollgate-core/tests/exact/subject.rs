//! Core's side: one key under one policy, and its answers in plain numbers.

use std::time::Duration;

use tollgate_core::{Cost, Op, Policy, PolicyDecision, Settlement, State, Timestamp, Verdict};

/// What a caller is told, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) allowed: bool,
    pub(crate) remaining: u64,
    pub(crate) retry_after: Option<u64>,
    pub(crate) reset_after: u64,
    pub(crate) delay: u64,
}

/// A charge and where it ended, as a receipt keeps them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Charge {
    pub(crate) at: Timestamp,
    pub(crate) cost: Cost,
    pub(crate) mark: u64,
}

impl Charge {
    pub(crate) fn settlement(self, actual: u64) -> Settlement {
        Settlement {
            charged_at: self.at,
            charged: self.cost,
            mark: self.mark,
            actual,
        }
    }
}

/// A key of core's under `policy`.
#[derive(Clone, Debug)]
pub(crate) struct Subject {
    pub(crate) policy: Policy,
    pub(crate) state: Option<State>,
}

impl Subject {
    pub(crate) fn new(policy: &Policy) -> Self {
        Self {
            policy: policy.clone(),
            state: None,
        }
    }

    pub(crate) fn ask(&mut self, now: Timestamp, op: Op) -> Answer {
        let verdict = self.step(now, op);
        let charged = matches!(op, Op::Hit(_)) && verdict.is_allowed();
        let decision = PolicyDecision::from_verdict(&self.policy, verdict, now, op.cost(), charged);
        Answer {
            allowed: decision.is_allowed(),
            remaining: decision.remaining(),
            retry_after: decision.retry_after().map(micros),
            reset_after: micros(decision.reset_after()),
            delay: micros(decision.delay()),
        }
    }

    pub(crate) fn step(&mut self, now: Timestamp, op: Op) -> Verdict {
        self.policy.rule().step(&mut self.state, now, op)
    }

    pub(crate) fn hit(&mut self, now: Timestamp, units: u64) -> Answer {
        self.ask(now, Op::Hit(cost(units)))
    }

    pub(crate) fn peek(&self, now: Timestamp, units: u64) -> Answer {
        self.clone().ask(now, Op::Peek(cost(units)))
    }

    /// Charges `units`; `None` if they do not fit.
    pub(crate) fn reserve(&mut self, now: Timestamp, units: u64) -> Option<Charge> {
        let verdict = self.step(now, Op::Hit(cost(units)));
        verdict.is_allowed().then(|| Charge {
            at: now,
            cost: cost(units),
            mark: verdict.mark(),
        })
    }

    /// Charges `units` whether or not they fit.
    pub(crate) fn owe(&mut self, now: Timestamp, units: u64) {
        let nothing_yet = Charge {
            at: now,
            cost: Cost::ONE,
            mark: 0,
        };
        self.settle(now, nothing_yet, 1 + units);
    }

    pub(crate) fn settle(&mut self, now: Timestamp, charge: Charge, actual: u64) -> Answer {
        self.ask(now, Op::Settle(charge.settlement(actual)))
    }
}

pub(crate) fn cost(units: u64) -> Cost {
    Cost::new(units).expect("at least one unit")
}

pub(crate) fn at(micros: u64) -> Timestamp {
    Timestamp::from_micros(micros).expect("in range")
}

pub(crate) fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}
