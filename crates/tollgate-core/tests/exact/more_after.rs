//! More units are left after the time that is named, and not one microsecond earlier.

use proptest::prelude::*;
use tollgate_core::{Algorithm, Op, Policy, PolicyDecision, Timestamp};

use crate::draw::{cases, open_policies};
use crate::play::Player;
use crate::script::{actions, anywhere, scripts, units};
use crate::subject::{Subject, cost, micros};

/// Whether the named time is only an upper bound.
fn is_a_bound(policy: &Policy, decision: &PolicyDecision<'_>, units: u64) -> bool {
    let tells_the_oldest = !decision.is_allowed() && units == decision.remaining() + 1;
    policy.algorithm() == Algorithm::SlidingLog && !tells_the_oldest
}

fn remaining_after(subject: &Subject, now: Timestamp, wait: u64) -> u64 {
    let then = Timestamp::saturating_from_micros(now.as_micros() + wait);
    subject.peek(then, 1).remaining
}

proptest! {
    #![proptest_config(cases(3_000))]

    #[test]
    fn more_units_are_left_after_the_named_time_and_not_a_microsecond_earlier(
        policy in open_policies(),
        (start, steps) in scripts(anywhere(), actions(), 24),
        units in units(),
    ) {
        let mut player = Player::new(&policy, start);
        for step in steps {
            player.play(step);
            let mut subject = player.subject.clone();
            let units = units.count(policy.rule().capacity(), player.remaining());
            let verdict = subject.step(player.now, Op::Hit(cost(units)));
            let decision =
                PolicyDecision::from_verdict(&policy, verdict, player.now, cost(units), verdict.is_allowed());
            let wait = micros(decision.more_after().expect("a store answered"));
            if decision.remaining() == policy.rule().capacity() {
                prop_assert_eq!(wait, 0);
                continue;
            }
            if let (false, Some(retry)) = (decision.is_allowed(), decision.retry_after()) {
                prop_assert!(wait <= micros(retry));
            }
            if player.now.as_micros().saturating_add(wait) > Timestamp::MAX.as_micros() {
                continue;
            }
            prop_assert!(remaining_after(&subject, player.now, wait) > decision.remaining());
            if !is_a_bound(&policy, &decision, units) {
                prop_assert_eq!(remaining_after(&subject, player.now, wait - 1), decision.remaining());
            }
        }
    }
}
