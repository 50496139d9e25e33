//! With room enough, the store answers exactly as core does on states in a map.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support;

use std::collections::HashMap;

use proptest::prelude::*;
use support::{Limit, at, hit, policy};
use tollgate_memory::{
    Algorithm, Batch, Check, Cost, InProcessStore, MemoryStore, Op, Settlement, State, Store,
    Timestamp, Verdicts,
};

/// What is done to the store in one step.
#[derive(Clone, Debug)]
enum Act {
    Ask(Vec<(usize, usize, Deed)>),
    /// Settles the last hit that was charged.
    Settle(u64),
    Reset(usize, usize),
    Later(u64),
    Earlier(u64),
}

#[derive(Clone, Copy, Debug)]
enum Deed {
    Hit(u64),
    Peek(u64),
}

/// All algorithms under names of their own, and tiers and changes of quota: names that stand there twice.
fn limits() -> Vec<Limit> {
    let mut limits: Vec<Limit> = Algorithm::ALL
        .into_iter()
        .map(|algorithm| Limit::new(policy(algorithm.name(), algorithm, "5/100ms")))
        .collect();
    for (name, algorithm, quota) in [
        ("token-bucket", Algorithm::TokenBucket, "7/second burst 3"),
        ("gcra", Algorithm::Gcra, "0/second"),
        ("leaky-bucket", Algorithm::LeakyBucket, "999983/day burst 4"),
        ("fixed-window", Algorithm::FixedWindow, "3/30 days"),
        ("sliding-window", Algorithm::SlidingWindow, "9/second"),
        ("sliding-log", Algorithm::SlidingLog, "4/10 seconds"),
    ] {
        limits.push(Limit::new(policy(name, algorithm, quota)));
    }
    let daily = policy("daily", Algorithm::FixedWindow, "3/day");
    limits.push(Limit::new(daily.aligned(120).unwrap()));
    limits
}

const SUBJECTS: [&[u8]; 4] = [b"a", b"\xff\x00\xfe", b"user:0012345", &[b'x'; 300]];

fn acts(limits: usize) -> impl Strategy<Value = Vec<Act>> {
    let deed = prop_oneof![
        4 => (1_u64..4).prop_map(Deed::Hit),
        1 => (1_u64..12).prop_map(Deed::Peek),
    ];
    let ask = (0..limits, 0..SUBJECTS.len(), deed);
    let act = prop_oneof![
        8 => proptest::collection::vec(ask, 1..5).prop_map(Act::Ask),
        2 => (0_u64..9).prop_map(Act::Settle),
        1 => (0..limits, 0..SUBJECTS.len()).prop_map(|(limit, subject)| Act::Reset(limit, subject)),
        4 => (0_u64..200_000).prop_map(Act::Later),
        1 => (0_u64..90_000_000_000).prop_map(Act::Later),
        1 => (0_u64..200_000).prop_map(Act::Earlier),
        1 => (0_u64..90_000_000_000).prop_map(Act::Earlier),
    ];
    proptest::collection::vec(act, 1..60)
}

/// The specification: core's own batch on states in a map.
#[derive(Default)]
struct Model(HashMap<Vec<u8>, State>);

impl Model {
    fn judge(&mut self, batch: &Batch<'_>, now: Timestamp) -> Verdicts {
        let keys: Vec<Vec<u8>> = batch
            .checks()
            .iter()
            .map(|check| check.key.encode())
            .collect();
        let mut states: Vec<Option<State>> =
            keys.iter().map(|key| self.0.get(key).cloned()).collect();
        let verdicts = batch.step(&mut states, now);
        for (key, state) in keys.into_iter().zip(states) {
            if let Some(state) = state {
                self.0.insert(key, state);
            }
        }
        verdicts
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn every_answer_is_core_s_answer(
        start in prop_oneof![Just(0), 0..1_000_000_u64, Just(1_700_000_000_000_000)],
        acts in acts(limits().len()),
    ) {
        let limits = limits();
        let store = MemoryStore::builder().max_capacity(10_000).build().unwrap();
        let mut model = Model::default();
        let mut now = start;
        let mut charged: Option<(usize, usize, Settlement)> = None;

        for act in acts {
            match act {
                Act::Later(by) => now = (now + by).min(Timestamp::MAX.as_micros()),
                Act::Earlier(by) => now = now.saturating_sub(by),
                Act::Reset(limit, subject) => {
                    let key = limits[limit].check(SUBJECTS[subject], hit(1)).key;
                    let existed = model.0.remove(&key.encode()).is_some();
                    let keys = [key];
                    let counted = futures::executor::block_on(store.reset(&keys)).unwrap();
                    prop_assert_eq!(counted, u64::from(existed));
                }
                Act::Settle(actual) => {
                    let Some((limit, subject, settlement)) = charged.take() else { continue };
                    let op = Op::Settle(Settlement { actual, ..settlement });
                    let check = limits[limit].check(SUBJECTS[subject], op);
                    let batch = Batch::of_one(&check).at(Some(at(now)));
                    prop_assert_eq!(store.judge(&batch).unwrap(), model.judge(&batch, at(now)));
                }
                Act::Ask(asked) => {
                    let checks: Vec<Check<'_>> = asked
                        .iter()
                        .map(|(limit, subject, deed)| {
                            let op = match deed {
                                Deed::Hit(units) => hit(*units),
                                Deed::Peek(units) => Op::Peek(Cost::new(*units).unwrap()),
                            };
                            limits[*limit].check(SUBJECTS[*subject], op)
                        })
                        .collect();
                    // A key that stands there twice makes no batch; the tests of core say so.
                    let Ok(batch) = Batch::new(&checks) else { continue };
                    let batch = batch.at(Some(at(now)));
                    let answer = store.judge(&batch).unwrap();
                    prop_assert_eq!(&answer, &model.judge(&batch, at(now)));
                    if let ([(limit, subject, Deed::Hit(units))], true) = (&asked[..], answer.is_allowed()) {
                        charged = Some((*limit, *subject, Settlement {
                            charged_at: at(now),
                            charged: Cost::new(*units).unwrap(),
                            mark: answer.as_slice()[0].mark(),
                            actual: 0,
                        }));
                    }
                }
            }
        }
    }
}
