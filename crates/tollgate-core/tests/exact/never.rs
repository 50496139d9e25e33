//! Costs that can never fit, and limits of zero.

use proptest::prelude::*;
use tollgate_core::{Algorithm, ErrorKind, Quota};

use crate::draw::{cases, open_policies, policy, quotas};
use crate::play::Player;
use crate::script::{actions, anywhere, forwards, scripts};
use crate::subject::{Subject, at};

proptest! {
    #![proptest_config(cases(2_000))]

    #[test]
    fn more_than_ever_fits_is_never_admitted_and_charges_nothing(
        policy in open_policies(),
        (start, steps) in scripts(forwards(), actions(), 12),
        beyond in prop_oneof![Just(1), 1..=1_000_000_000_000_u64, Just(u64::MAX)],
    ) {
        let mut player = Player::new(&policy, start);
        let units = policy.rule().capacity().saturating_add(beyond);
        for step in steps {
            player.play(step);
            let before = player.subject.clone();
            let peeked = player.subject.peek(player.now, units);
            let hit = player.subject.hit(player.now, units);
            prop_assert_eq!(hit, peeked);
            prop_assert!(!hit.allowed && hit.retry_after.is_none());
            prop_assert_eq!(hit.remaining, before.peek(player.now, 1).remaining);
            prop_assert_eq!(&player.subject.state, &before.state);
        }
    }

    #[test]
    fn a_limit_of_zero_admits_nothing_ever_and_keeps_nothing(
        algorithm in proptest::sample::select(Algorithm::ALL.to_vec()),
        period in quotas().prop_map(|quota| quota.period()),
        (start, steps) in scripts(anywhere(), actions(), 12),
    ) {
        let blocked = Quota::new(0, period).expect("legal");
        let mut player = Player::new(&policy(algorithm, blocked), start);
        for step in steps {
            if let Some(answer) = player.play(step) {
                prop_assert!(!answer.allowed && answer.retry_after.is_none());
                prop_assert_eq!((answer.remaining, answer.reset_after), (0, 0));
            }
            prop_assert_eq!(&player.subject.state, &None);
        }
    }
}

#[test]
fn a_cost_of_zero_is_an_error_and_names_the_way_to_ask_without_taking() {
    let error = tollgate_core::Cost::new(0).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    assert!(error.to_string().contains("peek"), "{error}");
}

/// "Never, because the cost is above the limit" and "not now" are told apart.
#[test]
fn never_and_not_now_are_told_apart() {
    for algorithm in Algorithm::ALL {
        let mut subject = Subject::new(&policy(algorithm, "3/second".parse().expect("legal")));
        let now = at(1_000_000_000_000_000);
        let never = subject.hit(now, 4);
        assert_eq!(
            (never.allowed, never.retry_after, never.remaining),
            (false, None, 3)
        );
        assert!(subject.hit(now, 3).allowed);
        let not_now = subject.hit(now, 3);
        assert!(
            !not_now.allowed && not_now.retry_after.is_some(),
            "{algorithm}"
        );
    }
}
