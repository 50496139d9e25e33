//! Plays a vector and says what came out otherwise.

use std::collections::HashMap;
use std::time::Duration;

use tollgate_core::{Cost, Op, Policy, PolicyDecision, Settlement, State, Timestamp};

use crate::time::{Micros, moved};
use crate::vector::{Expected, Kind, Step, Vector, Wait};

struct Player<'a> {
    policy: Policy,
    state: Option<State>,
    receipts: HashMap<&'a str, Settlement>,
}

/// What was answered otherwise than the vector says, step by step.
pub(crate) fn play(vector: &Vector) -> Vec<String> {
    let mut player = Player {
        policy: vector.policy.policy(),
        state: None,
        receipts: HashMap::new(),
    };
    let mut wrong = Vec::new();
    for (index, step) in vector.steps.iter().enumerate() {
        if let Some(policy) = &step.policy {
            player.policy = policy.policy();
        }
        let now = Timestamp::from_micros(moved(vector.start_us, &step.at)).expect("in range");
        for _ in 0..step.times {
            let told = player.play(step, now);
            wrong.extend(told.map(|told| format!("step {}: {told}", index + 1)));
        }
    }
    wrong
}

impl<'a> Player<'a> {
    fn play(&mut self, step: &'a Step, now: Timestamp) -> Option<String> {
        if step.op == Kind::Reset {
            let existed = self.state.take().is_some();
            let expected = step.existed.expect("a reset says whether there was a key");
            return (existed != expected).then(|| format!("existed: {existed}"));
        }
        let op = self.op(step);
        let answer = self.answer(step, now, op);
        let expected = step.expect.expect("a step says what it expects");
        (answer != expected).then(|| format!("{answer:?}, not {expected:?}"))
    }

    fn op(&mut self, step: &Step) -> Op {
        let cost = Cost::new(step.cost).expect("a legal cost");
        match step.op {
            Kind::Hit => Op::Hit(cost),
            Kind::Peek => Op::Peek(cost),
            Kind::Settle => {
                let name = step.receipt.as_deref().expect("a settlement has a receipt");
                let receipt = self.receipts.remove(name).expect("a receipt is used once");
                let actual = step.actual.expect("a settlement has a real cost");
                Op::Settle(Settlement { actual, ..receipt })
            }
            Kind::Reset => unreachable!("a reset asks nothing"),
        }
    }

    fn answer(&mut self, step: &'a Step, now: Timestamp, op: Op) -> Expected {
        let verdict = self.policy.rule().step(&mut self.state, now, op);
        let charged = step.op == Kind::Hit && verdict.is_allowed();
        if let (true, Some(name)) = (charged, &step.receipt) {
            let receipt = Settlement {
                charged_at: now,
                charged: op.cost(),
                mark: verdict.mark(),
                actual: 0,
            };
            self.receipts.insert(name, receipt);
        }
        let decision = PolicyDecision::from_verdict(&self.policy, verdict, now, op.cost(), charged);
        let wait = decision
            .retry_after()
            .map_or(Wait::Never, |wait| Wait::For(micros(wait)));
        Expected {
            allowed: decision.is_allowed(),
            remaining: decision.remaining(),
            retry_after: (!decision.is_allowed()).then_some(wait),
            reset_after: micros(decision.reset_after()),
            // A settlement's answer is not about a hit that could wait.
            delay: if step.op == Kind::Settle {
                Micros(0)
            } else {
                micros(decision.delay())
            },
        }
    }
}

fn micros(duration: Duration) -> Micros {
    Micros(u64::try_from(duration.as_micros()).expect("within half a million years"))
}
