//! A batch is judged at one instant; all of its hits are charged or none.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use tollgate_core::{
    Algorithm, Batch, Check, Cost, ErrorKind, Key, Op, Policy, PolicyDecision, Quota, Settlement,
    Source, Space, State, Timestamp, Verdict, Verdicts,
};

const START: u64 = 1_700_000_000_000_000;

fn at(micros: u64) -> Timestamp {
    Timestamp::from_micros(START + micros).expect("in range")
}

/// One member of a batch: its policy, what it has seen before, and what it is asked now.
#[derive(Clone, Debug)]
struct Member {
    policy: Policy,
    space: Space,
    state: Option<State>,
    op: Op,
}

fn policy(algorithm: Algorithm, index: usize) -> Policy {
    Policy::new(&format!("p{index}"), algorithm, Quota::per_second(10)).expect("legal")
}

fn ops() -> impl Strategy<Value = Op> {
    let cost = (1..=11_u64).prop_map(|units| Cost::new(units).expect("at least one"));
    let settlement =
        (cost.clone(), 0..=20_u64, 0..=500_000_u64).prop_map(|(charged, actual, ago)| {
            Op::Settle(Settlement {
                charged_at: at(1_000_000 - ago),
                charged,
                mark: 3_000_000,
                actual,
            })
        });
    prop_oneof![
        6 => cost.clone().prop_map(Op::Hit),
        2 => cost.prop_map(Op::Peek),
        1 => settlement,
    ]
}

fn members() -> impl Strategy<Value = Vec<Member>> {
    let history = vec((0..=2_000_000_u64, 1..=10_u64), 0..4);
    let member = (select(Algorithm::ALL.to_vec()), history, ops());
    vec(member, 1..6).prop_map(|members| {
        let members = members.into_iter().enumerate();
        members
            .map(|(index, (algorithm, history, op))| {
                let policy = policy(algorithm, index);
                let mut state = None;
                for (micros, units) in history {
                    let hit = Op::Hit(Cost::new(units).expect("at least one"));
                    let _ = policy.rule().step(&mut state, at(micros), hit);
                }
                Member {
                    space: Space::new("", "", &policy),
                    policy,
                    state,
                    op,
                }
            })
            .collect()
    })
}

/// What the batch answers and leaves, in the order of `members`.
fn play(members: &[Member], now: Timestamp) -> (Vec<Verdict>, Vec<Option<State>>) {
    let checks: Vec<_> = members
        .iter()
        .map(|member| check(member, b"subject"))
        .collect();
    let mut states: Vec<_> = members.iter().map(|member| member.state.clone()).collect();
    let verdicts = Batch::new(&checks)
        .expect("no key twice")
        .step(&mut states, now);
    assert_eq!(verdicts.at(), now);
    (verdicts.as_slice().to_vec(), states)
}

fn check<'a>(member: &'a Member, subject: &'a [u8]) -> Check<'a> {
    Check {
        key: Key::new(&member.space, subject).expect("not empty"),
        policy: &member.policy,
        op: member.op,
    }
}

/// What one member answers and keeps by itself.
fn alone(member: &Member, op: Op, now: Timestamp) -> (Verdict, Option<State>) {
    let mut state = member.state.clone();
    let verdict = member.policy.rule().step(&mut state, now, op);
    (verdict, state)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    #[test]
    fn all_hits_are_charged_if_each_fits_by_itself_and_none_otherwise(members in members(), now in 0..=3_000_000_u64) {
        let now = at(now);
        let fits = |member: &Member| !matches!(member.op, Op::Hit(_)) || alone(member, member.op, now).0.is_allowed();
        let all_fit = members.iter().all(fits);
        let (verdicts, states) = play(&members, now);
        for ((member, verdict), state) in members.iter().zip(verdicts).zip(states) {
            match member.op {
                Op::Hit(cost) if !all_fit => {
                    // Nothing is charged, and the answer is what a peek at that moment tells.
                    let (peeked, _) = alone(member, Op::Peek(cost), now);
                    prop_assert_eq!(verdict, peeked);
                    let (again, _) = alone(&Member { state: state.clone(), ..member.clone() }, Op::Peek(cost), now);
                    prop_assert_eq!(again, peeked);
                    let stored = member.state.as_ref().and_then(State::time);
                    prop_assert!(stored <= Some(now) || state.as_ref().and_then(State::time) <= Some(now));
                    if stored <= Some(now) {
                        prop_assert_eq!(state, member.state.clone());
                    }
                }
                op => prop_assert_eq!((verdict, state), alone(member, op, now)),
            }
        }
    }

    #[test]
    fn the_order_of_the_checks_changes_no_answer_and_no_state(
        (members, order) in members().prop_flat_map(|members| {
            let order: Vec<usize> = (0..members.len()).collect();
            (Just(members), Just(order).prop_shuffle())
        }),
        now in 0..=3_000_000_u64,
    ) {
        let shuffled: Vec<_> = order.iter().map(|index| members[*index].clone()).collect();
        let (verdicts, states) = play(&members, at(now));
        let (shuffled_verdicts, shuffled_states) = play(&shuffled, at(now));
        for (place, index) in order.into_iter().enumerate() {
            prop_assert_eq!(shuffled_verdicts[place], verdicts[index]);
            prop_assert_eq!(&shuffled_states[place], &states[index]);
        }
    }

    #[test]
    fn a_batch_of_one_is_the_check_by_itself(members in members(), now in 0..=3_000_000_u64) {
        let member = &members[0];
        let check = check(member, b"subject");
        let mut states = [member.state.clone()];
        let verdicts = Batch::of_one(&check).step(&mut states, at(now));
        let (verdict, state) = alone(member, member.op, at(now));
        prop_assert_eq!(verdicts.as_slice(), [verdict]);
        prop_assert_eq!(&states[0], &state);
        prop_assert_eq!(verdicts.is_allowed(), verdict.is_allowed());
    }
}

fn member(index: usize, op: Op) -> Member {
    let policy = policy(Algorithm::Gcra, index);
    Member {
        space: Space::new("", "", &policy),
        policy,
        state: None,
        op,
    }
}

fn hit(units: u64) -> Op {
    Op::Hit(Cost::new(units).expect("at least one"))
}

#[test]
fn a_peek_that_would_be_denied_does_not_stand_in_the_way() {
    let peek = Op::Peek(Cost::new(11).unwrap());
    let members = [member(0, hit(10)), member(1, peek)];
    let (verdicts, states) = play(&members, at(0));
    assert!(verdicts[0].is_allowed() && !verdicts[1].is_allowed());
    assert!(states[0].is_some() && states[1].is_none());
}

#[test]
fn a_settlement_is_carried_out_beside_a_hit_that_is_denied() {
    let settlement = Settlement {
        charged_at: at(0),
        charged: Cost::ONE,
        mark: 0,
        actual: 3,
    };
    let members = [
        member(0, hit(11)),
        member(1, Op::Settle(settlement)),
        member(2, hit(1)),
    ];
    let (verdicts, states) = play(&members, at(0));
    assert!(!verdicts[0].is_allowed() && verdicts[1].is_allowed() && verdicts[2].is_allowed());
    assert!(states[0].is_none() && states[1].is_some() && states[2].is_none());
}

#[test]
fn a_batch_has_1_to_64_checks_and_no_key_twice() {
    let members: Vec<_> = (0..65).map(|index| member(index, hit(1))).collect();
    let checks: Vec<_> = members
        .iter()
        .map(|member| check(member, b"subject"))
        .collect();
    let refusal = |checks: &[Check<'_>]| {
        let error = Batch::new(checks).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        error.to_string()
    };
    assert_eq!(Batch::new(&checks[..64]).unwrap().checks().len(), 64);
    assert!(refusal(&checks).contains("not 65"));
    assert!(refusal(&[]).contains("not 0"));
    assert!(refusal(&[checks[0], checks[1], checks[0]]).contains("twice"));
    // One policy may stand there twice if it is asked about two subjects.
    let other = check(&members[0], b"other");
    assert!(Batch::new(&[checks[0], other]).is_ok());
}

#[test]
fn a_batch_is_judged_by_the_stores_clock_unless_it_names_an_instant() {
    let member = member(0, hit(1));
    let check = check(&member, b"subject");
    assert_eq!(Batch::of_one(&check).instant(), None);
    assert_eq!(Batch::of_one(&check).at(Some(at(7))).instant(), Some(at(7)));
    assert_eq!(
        Batch::new(&[check])
            .unwrap()
            .at(Some(at(7)))
            .at(None)
            .instant(),
        None
    );
}

#[test]
fn verdicts_by_other_rules_carry_them_and_their_decisions_follow_from_them() {
    let whole = policy(Algorithm::TokenBucket, 0);
    let share = Policy::from(Quota::per_second(2));
    let verdict = share.rule().step(&mut None, at(0), Op::Hit(Cost::ONE));

    let verdicts = Verdicts::by_rules(at(0), [verdict].into(), [*share.rule()].into());

    assert_eq!(verdicts.source(), Source::Fallback);
    assert_eq!(verdicts.as_slice(), [verdict]);
    assert_eq!(verdicts.rule(0), Some(share.rule()));
    assert_eq!(verdicts.rule(1), None);
    let decision = PolicyDecision::from_verdicts(&whole, &verdicts, 0, Cost::ONE, true);
    assert_eq!((decision.limit(), decision.remaining()), (2, 1));
    assert_eq!(decision.policy(), &whole);

    let own = Verdicts::one(at(0), verdict);
    assert_eq!(own.rule(0), None);
    let decision = PolicyDecision::from_verdicts(&whole, &own, 0, Cost::ONE, true);
    assert_eq!(decision.limit(), 10);
}

#[test]
fn a_batch_says_who_charged_what_it_settles() {
    let policy = policy(Algorithm::TokenBucket, 0);
    let space = Space::new("", "", &policy);
    let check = Check {
        key: Key::new(&space, b"someone").expect("not empty"),
        policy: &policy,
        op: Op::Peek(Cost::ONE),
    };
    let batch = Batch::of_one(&check);
    assert_eq!(batch.settles_charges_of(), Source::Store);
    let batch = batch.charged_by(Source::Fallback).at(Some(at(0)));
    assert_eq!(batch.settles_charges_of(), Source::Fallback);
}
