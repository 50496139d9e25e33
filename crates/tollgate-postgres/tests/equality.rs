//! Whatever happens, in virtual time the SQL answers what core's own step answers, bit for bit.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use tokio::runtime::Runtime;
use tollgate_core::{
    Algorithm, Batch, Check, Cost, Key, Op, Policy, Quota, Settlement, Space, State, Store,
    Timestamp, Verdicts,
};
use tollgate_postgres::{PostgresStore, tollgate_core};

/// What happens at one instant.
#[derive(Clone, Debug)]
struct Step {
    /// How the clock moves, in microseconds, from the last step.
    moves: i64,
    /// Which keys are asked, how, and by how much.
    asks: Vec<Ask>,
}

#[derive(Clone, Debug)]
struct Ask {
    key: usize,
    /// Which of the key's two policies.
    changed: bool,
    what: What,
}

#[derive(Clone, Debug)]
enum What {
    Hit(u64),
    Peek(u64),
    /// Settle the hit made so many hits ago.
    Settle {
        back: usize,
        actual: u64,
    },
    /// Settle a hit that never was.
    Invent(Settlement),
}

fn periods() -> impl Strategy<Value = u64> {
    prop_oneof![
        Just(1_000),
        Just(7_000),
        Just(1_000_000),
        Just(60_000_000),
        Just(86_400_000_000),
        Just(400 * 86_400_000_000),
        (1_u64..100_000).prop_map(|millis| millis * 1_000),
    ]
}

fn limits() -> impl Strategy<Value = u64> {
    prop_oneof![
        8 => 1_u64..20,
        2 => 20_u64..5_000,
        1 => Just(0),
        1 => Just(999_983),
        1 => Just(1_000_000_000_000),
        1 => 1_u64..1_000_000_000_000,
    ]
}

fn quotas() -> impl Strategy<Value = Quota> {
    (limits(), periods()).prop_filter_map("a quota that exists", |(limit, period)| {
        Quota::new(limit, Duration::from_micros(period)).ok()
    })
}

fn policies() -> impl Strategy<Value = (Policy, Policy)> {
    let algorithm = prop::sample::select(Algorithm::ALL.to_vec());
    let burst = prop::option::of(1_u64..50);
    let offset = prop::option::of(-1_080_i32..=1_080);
    (algorithm, quotas(), quotas(), burst, offset).prop_map(
        |(algorithm, quota, changed, burst, offset)| {
            let build = |quota: Quota| {
                let bursty = matches!(algorithm.family(), tollgate_core::Family::Bucket);
                let quota = match burst.filter(|_| bursty && quota.limit() > 0) {
                    Some(burst) => quota.with_burst(burst).unwrap_or(quota),
                    None => quota,
                };
                let policy = Policy::new("p", algorithm, quota).unwrap();
                match offset.filter(|_| algorithm == Algorithm::FixedWindow) {
                    Some(offset) => policy.aligned(offset).unwrap(),
                    None => policy,
                }
            };
            (build(quota), build(changed))
        },
    )
}

fn costs() -> impl Strategy<Value = u64> {
    prop_oneof![
        20 => Just(1),
        10 => 1_u64..6,
        2 => 1_u64..2_000,
        1 => Just(1_000_000_000_000),
        1 => Just(u64::MAX),
        1 => 1_u64..u64::MAX,
    ]
}

fn whats() -> impl Strategy<Value = What> {
    let times = 0_u64..8_000_000_000_000_000;
    prop_oneof![
        12 => costs().prop_map(What::Hit),
        4 => costs().prop_map(What::Peek),
        4 => (0_usize..6, prop_oneof![Just(0), 0_u64..8, costs()])
            .prop_map(|(back, actual)| What::Settle { back, actual }),
        1 => (times, costs(), any::<u64>(), prop_oneof![0_u64..8, any::<u64>()]).prop_map(
            |(at, charged, mark, actual)| What::Invent(Settlement {
                charged_at: Timestamp::saturating_from_micros(at),
                charged: Cost::new(charged).unwrap(),
                mark,
                actual,
            })
        ),
    ]
}

fn moves() -> impl Strategy<Value = i64> {
    prop_oneof![
        4 => Just(0),
        6 => 0_i64..3_000,
        6 => 0_i64..3_000_000,
        4 => -2_000_000_i64..0,
        2 => 0_i64..200_000_000_000,
        1 => Just(-8_000_000_000_000_000),
        1 => Just(8_000_000_000_000_000),
        1 => -200_000_000_000_i64..0,
    ]
}

fn steps(
    moves: impl Strategy<Value = i64>,
    count: usize,
    asks: usize,
) -> impl Strategy<Value = Vec<Step>> {
    let ask = (0..asks.max(3), prop::bool::weighted(0.1), whats())
        .prop_map(|(key, changed, what)| Ask { key, changed, what });
    let step = (moves, prop::collection::vec(ask, 1..=asks))
        .prop_map(|(moves, asks)| Step { moves, asks });
    prop::collection::vec(step, 1..count)
}

/// One key with its model, and the hits it may settle.
struct Subject {
    space: Space,
    policies: (Policy, Policy),
    state: Option<State>,
    hits: Vec<(Timestamp, Cost, u64)>,
}

impl Subject {
    fn op(&self, what: &What) -> Op {
        match *what {
            What::Hit(cost) => Op::Hit(Cost::new(cost).unwrap()),
            What::Peek(cost) => Op::Peek(Cost::new(cost).unwrap()),
            What::Invent(settlement) => Op::Settle(settlement),
            What::Settle { back, actual } => {
                let index = self.hits.len().checked_sub(1 + back);
                let Some(&(charged_at, charged, mark)) = index.and_then(|i| self.hits.get(i))
                else {
                    return Op::Peek(Cost::ONE);
                };
                Op::Settle(Settlement {
                    charged_at,
                    charged,
                    mark,
                    actual,
                })
            }
        }
    }
}

/// Plays `steps` on both and compares every answer.
async fn play(
    store: &PostgresStore,
    scope: &str,
    start: u64,
    policies: Vec<(Policy, Policy)>,
    steps: &[Step],
) -> Result<(), TestCaseError> {
    let mut subjects: Vec<Subject> = policies
        .into_iter()
        .enumerate()
        .map(|(index, policies)| Subject {
            space: Space::new("", &format!("{scope}/{index}"), &policies.0),
            policies,
            state: None,
            hits: Vec::new(),
        })
        .collect();
    let mut now = start;
    for (number, step) in steps.iter().enumerate() {
        now = now
            .saturating_add_signed(step.moves)
            .min(Timestamp::MAX.as_micros());
        let at = Timestamp::from_micros(now).unwrap();
        let mut asked: Vec<(usize, bool, Op)> = Vec::new();
        for ask in &step.asks {
            let key = ask.key % subjects.len();
            if asked.iter().all(|(other, ..)| *other != key) {
                asked.push((key, ask.changed, subjects[key].op(&ask.what)));
            }
        }
        let checks: Vec<Check<'_>> = asked
            .iter()
            .map(|(key, changed, op)| {
                let subject = &subjects[*key];
                let policy = if *changed {
                    &subject.policies.1
                } else {
                    &subject.policies.0
                };
                Check {
                    key: Key::new(&subject.space, b"subject").unwrap(),
                    policy,
                    op: *op,
                }
            })
            .collect();
        let batch = Batch::new(&checks).unwrap().at(Some(at));
        let mut states: Vec<_> = asked
            .iter()
            .map(|(key, ..)| subjects[*key].state.clone())
            .collect();
        let expected: Verdicts = batch.step(&mut states, at);
        let answered = store
            .apply(batch)
            .await
            .map_err(|error| TestCaseError::fail(format!("step {number}: {error:?}")))?;
        prop_assert_eq!(
            &answered,
            &expected,
            "step {} at {}: {:?}",
            number,
            now,
            checks
        );
        let verdicts = expected.as_slice();
        let all = asked
            .iter()
            .zip(verdicts)
            .all(|((_, _, op), verdict)| !matches!(op, Op::Hit(_)) || verdict.is_allowed());
        for (((key, _, op), state), verdict) in asked.iter().zip(states).zip(verdicts) {
            subjects[*key].state = state;
            if let Op::Hit(cost) = op
                && all
            {
                subjects[*key].hits.push((at, *cost, verdict.mark()));
            }
        }
    }
    Ok(())
}

/// Plays cases of `given` on a store over one connection.
fn check(
    cases: u32,
    policies: impl Strategy<Value = Vec<(Policy, Policy)>>,
    steps: impl Strategy<Value = Vec<Step>>,
) {
    let runtime = Runtime::new().unwrap();
    let server = support::server();
    let store = runtime.block_on(async {
        let pool = support::pool(&server, 1);
        let schema = support::schema(&pool).await;
        PostgresStore::builder(pool).schema(schema).build().unwrap()
    });
    let mut runner = TestRunner::new(ProptestConfig {
        cases,
        max_shrink_iters: 2_000,
        failure_persistence: None,
        ..ProptestConfig::default()
    });
    let starts = prop_oneof![
        Just(0_u64),
        0_u64..2_000_000,
        Just(1_700_000_000_000_000),
        Just(8_000_000_000_000_000)
    ];
    let scopes = AtomicU32::new(0);
    runner
        .run(&(starts, policies, steps), |(start, policies, steps)| {
            let scope = scopes.fetch_add(1, Ordering::Relaxed);
            runtime.block_on(play(&store, &scope.to_string(), start, policies, &steps))
        })
        .unwrap();
}

#[test]
fn one_check_at_a_time_is_answered_as_core_answers() {
    let one = prop::collection::vec(policies(), 1);
    check(400, one, steps(moves(), 60, 1));
}

#[test]
fn batches_are_answered_as_core_answers() {
    let up_to_three = prop::collection::vec(policies(), 1..=3);
    check(300, up_to_three, steps(moves(), 40, 3));
}

/// So many keys that the SQL reads and writes them all in one query each.
#[test]
fn wide_batches_are_answered_as_core_answers() {
    let many = prop::collection::vec(policies(), 10..=16);
    check(60, many, steps(moves(), 30, 24));
}

/// Long enough for the log to fill chunks, and for chunks to expire, to be given back to and to be moved back.
#[test]
fn long_logs_are_answered_as_core_answers() {
    let log = |limit: u64, millis: u64| {
        let quota = Quota::new(limit, Duration::from_millis(millis)).unwrap();
        Policy::new("p", Algorithm::SlidingLog, quota).unwrap()
    };
    let logs = (30_u64..600, 1_u64..40, 30_u64..600, 1_u64..40);
    let logs = logs.prop_map(move |(limit, tens, other, others)| {
        vec![(log(limit, 10 * tens), log(other, 10 * others))]
    });
    let moves = prop_oneof![
        200 => 0_i64..1_000,
        30 => Just(0),
        4 => 0_i64..100_000,
        4 => -50_000_i64..0,
        1 => -500_000_i64..500_000,
    ];
    check(12, logs, steps(moves, 1_500, 1));
}
