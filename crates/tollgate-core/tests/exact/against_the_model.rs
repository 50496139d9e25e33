//! Whatever is asked, at whatever time, core answers what the slow model answers.

use proptest::prelude::*;
use tollgate_core::{Algorithm, Op, Policy, State, Timestamp};

use crate::draw::{cases, policies};
use crate::model::{Correction, Exact, Micros, Model, model};
use crate::script::{Action, Step, actions, anywhere, scripts};
use crate::subject::{Answer, Charge, Subject, at, cost};

struct Pair {
    core: Subject,
    slow: Box<dyn Model>,
    now: Timestamp,
    last: Option<Answer>,
    open_charges: Vec<(Charge, Exact)>,
}

impl Pair {
    fn new(policy: &Policy, start: Timestamp) -> Self {
        Self {
            core: Subject::new(policy),
            slow: model(policy),
            now: start,
            last: None,
            open_charges: Vec::new(),
        }
    }

    fn play(&mut self, step: Step) {
        self.now = step
            .moves
            .from(self.now, &self.core.policy, self.last.as_ref());
        let remaining = self.last.map_or(0, |answer| answer.remaining);
        let answer = match step.action {
            Action::Hit(units) => self.hit(units.count(self.slow.capacity(), remaining)),
            Action::Peek(units) => self.peek(units.count(self.slow.capacity(), remaining)),
            Action::Settle(_, _) if self.open_charges.is_empty() => return,
            Action::Settle(index, actual) => {
                let open = self.open_charges.len();
                let (charge, used_after) = self.open_charges.remove(index % open);
                self.settle(charge, used_after, actual.of(charge.cost.get()))
            }
        };
        self.last = Some(answer);
        self.check_stored(&answer);
    }

    fn micros(&self) -> Micros {
        self.now.as_micros().into()
    }

    fn hit(&mut self, units: u64) -> Answer {
        let now = self.micros();
        let queued = self.slow.used(now);
        let verdict = self.core.clone().step(self.now, Op::Hit(cost(units)));
        let answer = self.core.hit(self.now, units);
        assert_eq!(answer.allowed, self.slow.hit(now, units), "hit of {units}");
        self.check(&answer, units);
        if answer.allowed {
            let charge = Charge {
                at: self.now,
                cost: cost(units),
                mark: verdict.mark(),
            };
            self.open_charges.push((charge, self.slow.used(now)));
        }
        if answer.allowed && self.core.policy.algorithm() == Algorithm::LeakyBucket {
            // The hit leaves once as much has drained as stood before it.
            self.check_first_instant(answer.delay, |then| {
                self.slow.used(now) - self.slow.used(then) >= queued
            });
        } else {
            assert_eq!(answer.delay, 0);
        }
        answer
    }

    fn peek(&mut self, units: u64) -> Answer {
        let before = self.core.state.clone();
        let answer = self.core.ask(self.now, Op::Peek(cost(units)));
        assert_eq!(self.core.state, before, "a peek wrote");
        assert_eq!(
            answer.allowed,
            self.slow.fits(self.micros(), units),
            "peek of {units}"
        );
        self.check(&answer, units);
        answer
    }

    fn settle(&mut self, charge: Charge, used_after: Exact, actual: u64) -> Answer {
        let correction = Correction {
            charged_at: charge.at.as_micros().into(),
            charged: charge.cost.get(),
            used_after,
            actual,
        };
        let answer = self.core.settle(self.now, charge, actual);
        self.slow.settle(self.micros(), &correction);
        assert!(answer.allowed);
        self.check(&answer, 1);
        answer
    }

    /// Every number of the answer but the verdict itself.
    fn check(&self, answer: &Answer, units: u64) {
        let now = self.micros();
        assert_eq!(
            self.slow.remaining(now),
            answer.remaining.into(),
            "{answer:?}"
        );
        assert!(answer.remaining <= self.slow.capacity());
        match answer.retry_after {
            None => assert!(!answer.allowed && units > self.slow.capacity()),
            Some(0) => assert!(answer.allowed),
            Some(wait) => {
                assert!(!answer.allowed && units <= self.slow.capacity());
                self.check_first_instant(wait, |then| self.slow.fits(then, units));
            }
        }
        if self.slow.capacity() > 0 {
            self.check_first_instant(answer.reset_after, |then| self.slow.is_fresh(then));
        }
    }

    /// `wait` is how long it takes until `holds` becomes true, to the microsecond.
    fn check_first_instant(&self, wait: u64, holds: impl Fn(Micros) -> bool) {
        let now = self.micros();
        if self.slow.is_ahead_of(now) {
            // Only a peek leaves it so. It speaks of the hit that will move the stored time back.
            return;
        }
        if wait < u64::MAX {
            assert!(holds(now + Micros::from(wait)), "not yet after {wait}");
        }
        if wait > 0 {
            assert!(
                !holds(now + Micros::from(wait - 1)),
                "already before {wait}"
            );
        }
    }

    /// What is stored survives being stored, and expires when the answer says so.
    fn check_stored(&self, answer: &Answer) {
        let Some(state) = &self.core.state else {
            return;
        };
        let decoded = State::decode(&state.encode()).expect("what was encoded");
        assert_eq!(&decoded, state);
        let expires_after = self.core.policy.rule().reset_after(state, self.now);
        assert_eq!(expires_after, answer.reset_after);
    }
}

proptest! {
    #![proptest_config(cases(3_000))]

    #[test]
    fn core_answers_what_exact_arithmetic_answers(
        policy in policies(),
        (start, steps) in scripts(anywhere(), actions(), 40),
    ) {
        let mut pair = Pair::new(&policy, start);
        for step in steps {
            pair.play(step);
        }
    }
}

#[test]
fn the_model_itself_counts_as_one_does_by_hand() {
    let policy: Policy = "10/minute"
        .parse::<tollgate_core::Quota>()
        .expect("legal")
        .into();
    let mut bucket = model(&policy);
    let start = Micros::from(at(1_000_000_000).as_micros());
    assert!(bucket.hit(start, 10));
    assert!(!bucket.fits(start + 5_999_999, 1));
    assert!(bucket.fits(start + 6_000_000, 1));
    assert!(!bucket.is_fresh(start + 59_999_999));
    assert!(bucket.is_fresh(start + 60_000_000));
}
