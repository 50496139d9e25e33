//! In virtual time every answer is the one that the bare store gives, bit for bit, whoever gave it.

use std::time::Duration;

use futures::executor::block_on;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use tollgate_core::{
    Algorithm, Batch, Check, Cost, ManualClock, Op, Quota, Settlement, Source, Store, Timestamp,
    Verdicts,
};
use tollgate_layers::{DenyCache, DenyCacheOptions};

use crate::stores::{Counter, Memory, hit, memory, peek};

#[derive(Clone, Debug)]
enum Step {
    Wait(u64),
    /// To the last denial's end, and a microsecond off.
    ToTheEnd(i8),
    Back(u64),
    Ask(Vec<(usize, bool, u64)>),
    Settle(usize, u64),
    Reset(usize),
    ChangeQuota(usize, u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let ask = vec((0..3_usize, prop::bool::weighted(0.8), 1..=7_u64), 1..=3);
    let single = (
        0..3_usize,
        prop::bool::weighted(0.9),
        select(vec![1, 1, 1, 2, 5, 9]),
    );
    let step = prop_oneof![
        4 => (1..=400_000_u64).prop_map(Step::Wait),
        3 => (-1..=1_i8).prop_map(Step::ToTheEnd),
        1 => (1..=300_000_u64).prop_map(Step::Back),
        14 => single.prop_map(|one| Step::Ask(vec![one])),
        7 => ask.prop_map(Step::Ask),
        1 => (0..9_usize, 0..=9_u64).prop_map(|(index, actual)| Step::Settle(index, actual)),
        1 => (0..3_usize).prop_map(Step::Reset),
        1 => (0..3_usize, 2..=8_u64).prop_map(|(index, limit)| Step::ChangeQuota(index, limit)),
    ];
    vec(step, 1..60)
}

/// The same calls on a bare store and on one whose denials are remembered.
#[derive(Debug)]
struct Pair {
    bare: Memory,
    cached: DenyCache<Memory>,
    counters: Vec<Counter>,
    now: Timestamp,
    end: Timestamp,
    charges: Vec<(usize, Settlement)>,
    from_memory: u32,
}

impl Pair {
    fn new(algorithms: &[Algorithm]) -> Self {
        let clock = ManualClock::default();
        let options = DenyCacheOptions::new().max_age(Duration::from_secs(3600));
        let counters = algorithms.iter().enumerate().map(|(index, algorithm)| {
            Counter::named(&format!("p{index}"), *algorithm, Quota::per_second(5))
        });
        Self {
            bare: memory(&clock),
            cached: DenyCache::with_options(memory(&clock), options).unwrap(),
            counters: counters.collect(),
            now: Timestamp::from_micros(1_000_000_000_000_000).unwrap(),
            end: Timestamp::EPOCH,
            charges: Vec::new(),
            from_memory: 0,
        }
    }

    fn ask(&mut self, checks: &[Check<'_>]) -> Verdicts {
        let batch = Batch::new(checks).unwrap().at(Some(self.now));
        let expected = block_on(self.bare.apply(batch)).unwrap();
        let got = block_on(self.cached.apply(batch)).unwrap();
        assert_eq!(
            (got.at(), got.as_slice()),
            (expected.at(), expected.as_slice())
        );
        if got.source() == Source::DenyCache {
            assert!(!got.is_allowed());
            self.from_memory += 1;
        }
        got
    }

    fn play(&mut self, step: Step) {
        match step {
            Step::Wait(micros) => self.now = self.now + Duration::from_micros(micros),
            Step::ToTheEnd(nudge) => {
                let end = self.end.as_micros().saturating_add_signed(nudge.into());
                self.now = self.now.max(Timestamp::from_micros(end).unwrap());
            }
            Step::Back(micros) => {
                self.now = Timestamp::from_micros(self.now.as_micros() - micros).unwrap();
            }
            Step::Ask(mut asked) => {
                asked.sort_unstable();
                asked.dedup_by_key(|(index, ..)| *index);
                self.play_batch(&asked);
            }
            Step::Settle(index, actual) if !self.charges.is_empty() => {
                let (counter, settlement) = self.charges.remove(index % self.charges.len());
                let counter = self.counters[counter].clone();
                let op = Op::Settle(Settlement {
                    actual,
                    ..settlement
                });
                self.ask(&[counter.check(op)]);
            }
            Step::Settle(..) => {}
            Step::Reset(index) => {
                let counter = &self.counters[index];
                let keys = [counter.key()];
                let expected = block_on(self.bare.reset(&keys)).unwrap();
                assert_eq!(block_on(self.cached.reset(&keys)).unwrap(), expected);
            }
            Step::ChangeQuota(index, limit) => {
                let (name, algorithm) = {
                    let policy = &self.counters[index].policy;
                    (policy.name().to_owned(), policy.algorithm())
                };
                let quota = Quota::new(limit, Duration::from_secs(1)).unwrap();
                self.counters[index] = Counter::named(&name, algorithm, quota);
            }
        }
    }

    fn play_batch(&mut self, asked: &[(usize, bool, u64)]) {
        let counters = self.counters.clone();
        let checks: Vec<Check<'_>> = asked
            .iter()
            .map(|(index, hits, units)| {
                counters[*index].check(if *hits { hit(*units) } else { peek(*units) })
            })
            .collect();
        let verdicts = self.ask(&checks);
        let wait = crate::time::retry_after(&checks, &verdicts);
        if let Some(wait) = wait {
            self.end = self.now + wait;
        }
        let admitted = checks
            .iter()
            .zip(verdicts.as_slice())
            .all(|(check, verdict)| verdict.is_allowed() || matches!(check.op, Op::Peek(_)));
        for ((index, hits, units), verdict) in asked.iter().zip(verdicts.as_slice()) {
            if *hits && admitted {
                let settlement = Settlement {
                    charged_at: self.now,
                    charged: Cost::new(*units).unwrap(),
                    mark: verdict.mark(),
                    actual: 0,
                };
                self.charges.push((*index, settlement));
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3_000))]

    #[test]
    fn every_answer_is_the_bare_stores(
        algorithms in vec(select(Algorithm::ALL.to_vec()), 3),
        steps in steps(),
    ) {
        let mut pair = Pair::new(&algorithms);
        for step in steps {
            pair.play(step);
        }
    }
}

#[test]
fn all_but_the_first_denial_of_a_full_key_come_from_memory() {
    for algorithm in Algorithm::ALL {
        let mut pair = Pair::new(&[algorithm]);
        for _ in 0..5 {
            pair.play(Step::Ask(vec![(0, true, 1)]));
        }
        for _ in 0..10 {
            pair.play(Step::Ask(vec![(0, true, 1)]));
            pair.play(Step::Wait(10_000));
        }
        assert_eq!(pair.from_memory, 9, "{algorithm}");
        pair.play(Step::Ask(vec![(0, false, 1)]));
        assert_eq!(pair.from_memory, 10, "a peek of {algorithm}");
        pair.play(Step::ToTheEnd(0));
        pair.play(Step::Ask(vec![(0, true, 1)]));
        assert_eq!(pair.from_memory, 10, "the end of {algorithm}");
    }
}

#[test]
fn a_batch_is_answered_from_memory_as_a_whole() {
    let mut pair = Pair::new(&[Algorithm::TokenBucket, Algorithm::FixedWindow]);
    pair.play(Step::Ask(vec![(0, true, 2), (1, true, 5)]));
    let both = Step::Ask(vec![(0, true, 1), (1, true, 1)]);
    pair.play(both.clone());
    assert_eq!(pair.from_memory, 0);
    pair.play(both.clone());
    assert_eq!(pair.from_memory, 1);
    // The bucket alone has room: it is charged, and what was known of the batch is true no more.
    pair.play(Step::Ask(vec![(0, true, 1)]));
    assert_eq!(pair.from_memory, 1);
    pair.play(both.clone());
    assert_eq!(pair.from_memory, 1);
    pair.play(both);
    assert_eq!(pair.from_memory, 2);
}
