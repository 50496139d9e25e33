//! Whatever state a store may hold, written under whatever quota, is judged without overflow and stays readable.

use proptest::collection::vec;
use proptest::prelude::*;
use tollgate_core::algorithm::{
    BucketState, FixedWindowState, SlidingLogState, SlidingWindowState,
};
use tollgate_core::{Op, State, Timestamp};

use crate::draw::{cases, policies};
use crate::script::{Actual, Units, actuals, units};
use crate::subject::{Charge, Subject, cost};

const MAX_STORED: u64 = (1 << 53) - 1;

fn instants() -> impl Strategy<Value = Timestamp> {
    let last = Timestamp::MAX.as_micros();
    prop_oneof![Just(0), Just(last), 0..=last].prop_map(Timestamp::saturating_from_micros)
}

fn numbers() -> impl Strategy<Value = u64> {
    prop_oneof![0..=20_u64, Just(MAX_STORED), 0..=MAX_STORED]
}

fn logs() -> impl Strategy<Value = SlidingLogState> {
    let hits = proptest::collection::btree_map(instants(), 1..=MAX_STORED / 8, 0..6);
    hits.prop_map(SlidingLogState::from_hits)
}

fn states() -> impl Strategy<Value = State> {
    let bucket = (instants(), numbers(), numbers());
    let windows = (instants(), numbers(), numbers());
    prop_oneof![
        bucket.prop_map(|(updated, level, unit)| {
            let unit = unit.max(1);
            State::Bucket(BucketState {
                updated,
                level,
                unit,
            })
        }),
        (instants(), numbers())
            .prop_map(|(start, count)| State::FixedWindow(FixedWindowState { start, count })),
        windows.prop_map(|(start, count, previous)| {
            State::SlidingWindow(SlidingWindowState {
                start,
                count,
                previous,
            })
        }),
        logs().prop_map(|log| State::SlidingLog(Box::new(log))),
    ]
}

#[derive(Clone, Debug)]
enum Asked {
    Hit(Units),
    Peek(Units),
    Settle {
        at: Timestamp,
        charged: Units,
        mark: u64,
        actual: Actual,
    },
}

fn asked() -> impl Strategy<Value = Asked> {
    prop_oneof![
        3 => units().prop_map(Asked::Hit),
        1 => units().prop_map(Asked::Peek),
        3 => (instants(), units(), numbers(), actuals())
            .prop_map(|(at, charged, mark, actual)| Asked::Settle { at, charged, mark, actual }),
    ]
}

proptest! {
    #![proptest_config(cases(10_000))]

    #[test]
    fn any_readable_state_is_judged_and_stays_readable(
        policy in policies(),
        state in states(),
        calls in vec((instants(), asked()), 1..8),
    ) {
        prop_assert_eq!(&State::decode(&state.encode()).expect("it is readable"), &state);
        let mut subject = Subject { policy, state: Some(state) };
        let capacity = subject.policy.rule().capacity();
        for (now, asked) in calls {
            let remaining = subject.peek(now, 1).remaining;
            let op = match asked {
                Asked::Hit(units) => Op::Hit(cost(units.count(capacity, remaining))),
                Asked::Peek(units) => Op::Peek(cost(units.count(capacity, remaining))),
                Asked::Settle { at, charged, mark, actual } => {
                    let charged = charged.count(capacity, remaining);
                    let charge = Charge { at, cost: cost(charged), mark };
                    Op::Settle(charge.settlement(actual.of(charged)))
                }
            };
            let answer = subject.ask(now, op);
            prop_assert!(answer.remaining <= capacity);
            let state = subject.state.as_ref().expect("it was there from the beginning");
            prop_assert_eq!(&State::decode(&state.encode()).expect("still readable"), state);
        }
    }
}
