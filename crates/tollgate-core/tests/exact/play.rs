//! Plays a script on core.

use tollgate_core::{Op, Policy, Timestamp};

use crate::script::{Action, Step};
use crate::subject::{Answer, Charge, Subject, cost};

/// A subject, the clock, and the charges that may still be settled.
#[derive(Clone, Debug)]
pub(crate) struct Player {
    pub(crate) subject: Subject,
    pub(crate) now: Timestamp,
    last: Option<Answer>,
    open_charges: Vec<Charge>,
}

impl Player {
    pub(crate) fn new(policy: &Policy, start: Timestamp) -> Self {
        Self {
            subject: Subject::new(policy),
            now: start,
            last: None,
            open_charges: Vec::new(),
        }
    }

    /// What remained after the last call.
    pub(crate) fn remaining(&self) -> u64 {
        let full = self.subject.policy.rule().capacity();
        self.last.map_or(full, |answer| answer.remaining)
    }

    /// Goes on at `now`, with nothing left to settle.
    pub(crate) fn restart(&mut self, now: Timestamp) {
        self.now = now;
        self.last = None;
        self.open_charges.clear();
    }

    /// Moves the clock and asks; `None` if there is no charge to settle.
    pub(crate) fn play(&mut self, step: Step) -> Option<Answer> {
        let last = self.last.as_ref();
        self.now = step.moves.from(self.now, &self.subject.policy, last);
        let op = self.op(step.action)?;
        let answer = self.ask(op);
        self.last = Some(answer);
        Some(answer)
    }

    fn op(&mut self, action: Action) -> Option<Op> {
        let (capacity, remaining) = (self.subject.policy.rule().capacity(), self.remaining());
        Some(match action {
            Action::Hit(units) => Op::Hit(cost(units.count(capacity, remaining))),
            Action::Peek(units) => Op::Peek(cost(units.count(capacity, remaining))),
            Action::Settle(_, _) if self.open_charges.is_empty() => return None,
            Action::Settle(index, actual) => {
                let charge = self.open_charges.remove(index % self.open_charges.len());
                Op::Settle(charge.settlement(actual.of(charge.cost.get())))
            }
        })
    }

    fn ask(&mut self, op: Op) -> Answer {
        if let Op::Hit(units) = op {
            let reserved = self.subject.clone().reserve(self.now, units.get());
            self.open_charges.extend(reserved);
        }
        self.subject.ask(self.now, op)
    }
}
