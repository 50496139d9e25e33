//! The script against the specification: the same calls at the same instants give the same verdicts, bit for bit.
#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on fails where it stands"
)]

mod common;

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use proptest::prelude::*;
use proptest::sample::select;
use tollgate_core::algorithm::MAX_STORED;
use tollgate_core::{
    Algorithm, Batch, Check, Cost, Key, Op, Policy, Quota, Settlement, Space, State, Store,
    Timestamp, Verdicts,
};
use tollgate_redis::{RedisStore, tollgate_core};

const FOUR_HUNDRED_DAYS_MS: u64 = 400 * 86_400_000;

/// Whole numbers up to `most` with every magnitude as likely as any other, and the ends themselves.
fn any_magnitude(most: u64) -> impl Strategy<Value = u64> {
    let bits = 64 - most.leading_zeros();
    prop_oneof![
        4 => (0..=bits, any::<u64>()).prop_map(move |(bits, number)| {
            let mask = if bits == 0 { 0 } else { u64::MAX >> (64 - bits) };
            (number & mask).min(most)
        }),
        1 => Just(most),
        1 => Just(most.saturating_sub(1)),
    ]
}

fn quota() -> impl Strategy<Value = Quota> {
    let ordinary = (0u64..20, 1u64..200, proptest::option::of(1u64..40));
    let odd = (
        select(vec![7, 13, 999_983, 999_999, 1_000_000]),
        select(vec![1, 1_000, 60_000, 86_400_000, FOUR_HUNDRED_DAYS_MS]),
        proptest::option::of(1u64..1_000_000),
    );
    let extreme = (
        any_magnitude(Quota::MAX_LIMIT),
        any_magnitude(FOUR_HUNDRED_DAYS_MS),
        proptest::option::of(any_magnitude(Quota::MAX_BURST)),
    );
    prop_oneof![2 => ordinary, 1 => odd, 3 => extreme].prop_filter_map(
        "not every limit goes with every period",
        |(limit, period, burst)| {
            let quota = Quota::new(limit, Duration::from_millis(period)).ok()?;
            match burst {
                Some(burst) => quota.with_burst(burst).ok(),
                None => Some(quota),
            }
        },
    )
}

/// Policies of one name and family, as after changes of the limit at run time.
fn policies() -> impl Strategy<Value = Vec<Policy>> {
    let algorithm = select(Algorithm::ALL.to_vec());
    let offset = proptest::option::of(-1080i32..=1080);
    (algorithm, offset, prop::collection::vec(quota(), 1..4)).prop_map(
        |(algorithm, offset, quotas)| {
            let policy = |quota: Quota| {
                let has_burst = matches!(
                    algorithm,
                    Algorithm::TokenBucket | Algorithm::LeakyBucket | Algorithm::Gcra
                );
                let quota = if has_burst {
                    quota
                } else {
                    Quota::new(quota.limit(), quota.period()).unwrap()
                };
                let policy = Policy::new("p", algorithm, quota).unwrap();
                match offset {
                    Some(minutes) if algorithm == Algorithm::FixedWindow => {
                        policy.aligned(minutes).unwrap()
                    }
                    _ => policy,
                }
            };
            quotas.into_iter().map(policy).collect()
        },
    )
}

/// How the clock moves before a call, in terms of the first policy's period.
#[derive(Clone, Debug)]
enum Move {
    Stay,
    Periods(i64),
    Forward(u64),
    Back(u64),
    To(u64),
}

fn movement() -> impl Strategy<Value = Move> {
    prop_oneof![
        4 => Just(Move::Stay),
        3 => (-8i64..=16).prop_map(Move::Periods),
        3 => any_magnitude(1 << 45).prop_map(Move::Forward),
        2 => any_magnitude(1 << 45).prop_map(Move::Back),
        1 => any_magnitude(Timestamp::MAX.as_micros()).prop_map(Move::To),
    ]
}

/// What is asked of one key.
#[derive(Clone, Debug)]
enum Ask {
    Hit(u64),
    /// A share of the capacity, in 64ths, so that states near the limit are common.
    HitShare(u64),
    Peek(u64),
    Settle {
        back: usize,
        actual: u64,
    },
    SettleAnything(Settlement),
}

fn ask() -> impl Strategy<Value = Ask> {
    let anything = (
        any_magnitude(Timestamp::MAX.as_micros()),
        any_magnitude(u64::MAX - 1),
        any_magnitude(MAX_STORED),
        any_magnitude(u64::MAX),
    )
        .prop_map(|(charged_at, charged, mark, actual)| {
            Ask::SettleAnything(Settlement {
                charged_at: Timestamp::from_micros(charged_at).unwrap(),
                charged: Cost::new(charged + 1).unwrap(),
                mark,
                actual,
            })
        });
    prop_oneof![
        3 => (1u64..4).prop_map(Ask::Hit),
        3 => (1u64..=64).prop_map(Ask::HitShare),
        1 => any_magnitude(u64::MAX - 1).prop_map(|cost| Ask::Hit(cost + 1)),
        1 => any_magnitude(1 << 40).prop_map(|cost| Ask::Peek(cost + 1)),
        2 => (0usize..4, any_magnitude(1 << 41)).prop_map(|(back, actual)| Ask::Settle { back, actual }),
        1 => anything,
    ]
}

#[derive(Clone, Debug)]
struct Step {
    movement: Move,
    /// The keys asked, each with the policy that asks and the question.
    asks: Vec<(usize, usize, Ask)>,
}

fn step() -> impl Strategy<Value = Step> {
    let asks = prop::collection::vec((0usize..4, 0usize..4, ask()), 1..4);
    (movement(), asks).prop_map(|(movement, mut asks)| {
        // No key stands in a batch twice.
        asks.sort_by_key(|(key, _, _)| *key);
        asks.dedup_by_key(|(key, _, _)| *key);
        Step { movement, asks }
    })
}

/// The model: core's own batches on states in memory, and what was charged, to be settled later.
struct Model {
    policies: Vec<Vec<Policy>>,
    spaces: Vec<Space>,
    states: Vec<Option<State>>,
    charges: Vec<Vec<Settlement>>,
    now: u64,
}

impl Model {
    fn new(policies: Vec<Vec<Policy>>, prefix: &str) -> Self {
        let spaces = policies
            .iter()
            .enumerate()
            .map(|(index, policies)| Space::new(prefix, &index.to_string(), &policies[0]))
            .collect();
        Self {
            states: vec![None; policies.len()],
            charges: vec![Vec::new(); policies.len()],
            spaces,
            policies,
            now: 1_700_000_000_123_457,
        }
    }

    fn shift(&mut self, movement: &Move) {
        let period = self.policies[0][0].quota().period_micros();
        let moved = match movement {
            Move::Stay => self.now,
            // Eighths of a period, so that windows are met on their edges and inside.
            Move::Periods(eighths) => self
                .now
                .saturating_add_signed(i64::try_from(period).unwrap() * eighths / 8),
            Move::Forward(by) => self.now + by,
            Move::Back(by) => self.now.saturating_sub(*by),
            Move::To(instant) => *instant,
        };
        self.now = moved.min(Timestamp::MAX.as_micros());
    }

    fn op(&self, key: usize, policy: &Policy, ask: &Ask) -> Op {
        let capacity = policy.rule().capacity();
        match ask {
            Ask::Hit(cost) => Op::Hit(Cost::new(*cost).unwrap()),
            Ask::HitShare(share) => {
                Op::Hit(Cost::new((capacity.saturating_mul(*share) / 64).max(1)).unwrap())
            }
            Ask::Peek(cost) => Op::Peek(Cost::new(*cost).unwrap()),
            Ask::Settle { back, actual } => {
                let charge = self.charges[key].iter().rev().nth(*back);
                charge.map_or(Op::Peek(Cost::ONE), |charge| {
                    let actual = *actual;
                    Op::Settle(Settlement { actual, ..*charge })
                })
            }
            Ask::SettleAnything(settlement) => Op::Settle(*settlement),
        }
    }

    fn remember(&mut self, key: usize, op: Op, verdicts: &Verdicts, index: usize) {
        if let Op::Hit(cost) = op
            && verdicts.is_allowed()
        {
            self.charges[key].push(Settlement {
                charged_at: verdicts.at(),
                charged: cost,
                mark: verdicts.as_slice()[index].mark(),
                actual: 0,
            });
        }
    }
}

/// A prefix that no other run on this server has used.
fn fresh_prefix() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    format!("run{}", NEXT.fetch_add(1, Ordering::Relaxed))
}

async fn compare(
    store: &RedisStore,
    policies: Vec<Vec<Policy>>,
    steps: &[Step],
) -> Result<(), TestCaseError> {
    let mut model = Model::new(policies, &fresh_prefix());
    for step in steps {
        model.shift(&step.movement);
        let now = Timestamp::from_micros(model.now).unwrap();
        let asked: Vec<(usize, Policy, Op)> = step
            .asks
            .iter()
            .map(|(key, policy, ask)| {
                let key = key % model.policies.len();
                let policy = &model.policies[key][policy % model.policies[key].len()];
                (key, policy.clone(), model.op(key, policy, ask))
            })
            .fold(Vec::new(), |mut distinct, one| {
                if distinct.iter().all(|(key, _, _)| *key != one.0) {
                    distinct.push(one);
                }
                distinct
            });
        let spaces = model.spaces.clone();
        let checks: Vec<Check<'_>> = asked
            .iter()
            .map(|(key, policy, op)| Check {
                key: Key::new(&spaces[*key], b"s").unwrap(),
                policy,
                op: *op,
            })
            .collect();
        let batch = Batch::new(&checks).unwrap().at(Some(now));
        let mut states: Vec<_> = asked
            .iter()
            .map(|(key, _, _)| model.states[*key].clone())
            .collect();
        let expected = batch.step(&mut states, now);
        let found = store
            .apply(batch)
            .await
            .map_err(|error| TestCaseError::fail(format!("{error} ({error:?}) for {checks:#?}")))?;
        prop_assert_eq!(&found, &expected, "at {} for {:#?}", now, checks);
        for (index, ((key, _, op), state)) in asked.iter().zip(states).enumerate() {
            model.states[*key] = state;
            model.remember(*key, *op, &expected, index);
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn the_script_answers_as_the_specification_does(
        policies in prop::collection::vec(policies(), 1..4),
        steps in prop::collection::vec(step(), 1..60),
    ) {
        run(policies, &steps)?;
    }
}

/// Steps that fill a log with many instants, and now and then turn the clock back or give units back.
fn long_log_step() -> impl Strategy<Value = Step> {
    let movement = prop_oneof![
        40 => (1u64..2_000).prop_map(Move::Forward),
        1 => (1u64..1_000_000).prop_map(Move::Back),
        1 => (100_000u64..2_000_000).prop_map(Move::Forward),
    ];
    let ask = prop_oneof![
        20 => (1u64..30).prop_map(Ask::Hit),
        1 => (1u64..=64).prop_map(Ask::HitShare),
        1 => (1u64..20_000).prop_map(Ask::Peek),
        1 => (0usize..600, 0u64..10).prop_map(|(back, actual)| Ask::Settle { back, actual }),
    ];
    (movement, ask).prop_map(|(movement, ask)| Step {
        movement,
        asks: vec![(0, 0, ask)],
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(6))]

    #[test]
    fn a_log_too_long_to_be_read_whole_answers_as_the_specification_does(
        steps in prop::collection::vec(long_log_step(), 2_000..2_001),
    ) {
        let quota = Quota::new(15_000, Duration::from_secs(2)).unwrap();
        run(vec![vec![Policy::new("p", Algorithm::SlidingLog, quota).unwrap()]], &steps)?;
    }
}

fn run(policies: Vec<Vec<Policy>>, steps: &[Step]) -> Result<(), TestCaseError> {
    thread_local! {
        static HERE: (tokio::runtime::Runtime, RedisStore) = {
            let runtime = common::runtime();
            let store = {
                let _entered = runtime.enter();
                common::store()
            };
            (runtime, store)
        };
    }
    HERE.with(|(runtime, store)| runtime.block_on(compare(store, policies, steps)))
}
