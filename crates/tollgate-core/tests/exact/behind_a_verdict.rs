//! A verdict tells what is left of a key: how much of it counts, and the state it was read from.

use proptest::prelude::*;
use tollgate_core::{Cost, Family, Op};

use crate::draw::{cases, open_policies};
use crate::play::Player;
use crate::script::{actions, anywhere, forwards, scripts};
use crate::subject::Subject;

proptest! {
    #![proptest_config(cases(2_000))]

    #[test]
    fn the_state_behind_a_hits_verdict_is_answered_as_the_stored_one(
        policy in open_policies(),
        (start, steps) in scripts(anywhere(), actions(), 16),
        (_, later) in scripts(forwards(), actions(), 16),
        units in 1..=20_u64,
    ) {
        prop_assume!(policy.algorithm().family() != Family::SlidingLog);
        let mut stored = Player::new(&policy, start);
        for step in steps {
            stored.play(step);
        }
        let hit = Op::Hit(Cost::new(units).expect("at least one"));
        let verdict = stored.subject.step(stored.now, hit);

        let mut told = Player::new(&policy, stored.now);
        told.subject = Subject {
            state: policy.rule().state_behind(&verdict, stored.now),
            ..Subject::new(&policy)
        };
        stored.restart(stored.now);
        for step in later {
            prop_assert_eq!(stored.play(step), told.play(step));
        }
    }

    #[test]
    fn what_is_used_and_what_remains_make_up_the_capacity(
        policy in open_policies(),
        (start, steps) in scripts(anywhere(), actions(), 16),
    ) {
        let mut player = Player::new(&policy, start);
        for step in steps {
            player.play(step);
            let verdict = player.subject.clone().step(player.now, Op::Peek(Cost::ONE));
            let used = policy.rule().used(&verdict, player.now);
            let remaining = player.subject.peek(player.now, 1).remaining;
            prop_assert_eq!(remaining, policy.rule().capacity().saturating_sub(used));
            prop_assert_eq!(verdict.is_allowed(), remaining > 0);
        }
    }
}
