//! When the clock steps back nothing is refilled, and nobody is locked out for longer than a normal refill takes.

use proptest::prelude::*;
use tollgate_core::{Op, Policy, Rule, State, Timestamp};

use crate::draw::{cases, open_policies};
use crate::play::Player;
use crate::script::{Action, anywhere, forwards, scripts, units};
use crate::subject::{Subject, at, cost};

/// The longest that anybody waits under `policy` for a cost that fits, if the clock only goes forwards.
fn longest_refill(policy: &Policy) -> u64 {
    match policy.rule() {
        Rule::Bucket(rule) => {
            let ticks = rule.full().div_ceil(rule.drain());
            let micros = u128::from(ticks) * u128::from(rule.tick());
            u64::try_from(micros).unwrap_or(u64::MAX)
        }
        Rule::FixedWindow(rule) => rule.period(),
        Rule::SlidingLog(rule) => rule.period(),
        // A window that is full until it ends, and then has to fade.
        Rule::SlidingWindow(rule) => 2 * rule.period(),
    }
}

fn time(subject: &Subject) -> Option<Timestamp> {
    subject.state.as_ref().and_then(State::time)
}

fn hits_and_peeks() -> impl Strategy<Value = Action> {
    prop_oneof![4 => units().prop_map(Action::Hit), 1 => units().prop_map(Action::Peek)]
}

proptest! {
    #![proptest_config(cases(3_000))]

    #[test]
    fn a_step_back_refills_nothing(
        policy in open_policies(),
        (start, steps) in scripts(forwards(), hits_and_peeks(), 16),
        back in 1..=400_000_000_000_u64,
    ) {
        let mut player = Player::new(&policy, start);
        for step in steps {
            player.play(step);
        }
        let Some(stored) = time(&player.subject) else {
            return Ok(());
        };
        let earlier = at(stored.as_micros().saturating_sub(back));
        let at_the_stored_time = player.subject.peek(stored, 1).remaining;
        prop_assert!(player.subject.peek(earlier, 1).remaining <= at_the_stored_time);
        let answer = player.subject.hit(earlier, 1);
        prop_assert!(answer.remaining <= at_the_stored_time.saturating_sub(u64::from(answer.allowed)));
    }

    #[test]
    fn whatever_the_clock_does_a_denial_lasts_no_longer_than_a_normal_refill(
        policy in open_policies(),
        (start, steps) in scripts(anywhere(), hits_and_peeks(), 24),
    ) {
        let mut player = Player::new(&policy, start);
        let longest = longest_refill(&policy);
        for step in steps {
            if let Some(wait) = player.play(step).and_then(|answer| answer.retry_after) {
                prop_assert!(wait <= longest, "{wait} > {longest}");
            }
        }
    }

    #[test]
    fn a_hit_moves_the_stored_time_back_even_if_it_is_denied_and_a_peek_never_does(
        policy in open_policies(),
        (start, steps) in scripts(anywhere(), hits_and_peeks(), 24),
    ) {
        let mut player = Player::new(&policy, start);
        for step in steps {
            let before = player.subject.state.clone();
            player.play(step);
            match step.action {
                Action::Hit(_) => prop_assert!(time(&player.subject) <= Some(player.now)),
                _ => prop_assert_eq!(&player.subject.state, &before),
            }
        }
    }

    #[test]
    fn a_denied_hit_leaves_exactly_the_usage_there_was(
        policy in open_policies(),
        (start, steps) in scripts(anywhere(), hits_and_peeks(), 24),
        units in units(),
    ) {
        let mut player = Player::new(&policy, start);
        for step in steps {
            player.play(step);
            let units = units.count(policy.rule().capacity(), player.remaining());
            let before = player.subject.peek(player.now, units);
            let mut denied = player.subject.clone();
            if !denied.hit(player.now, units).allowed {
                prop_assert_eq!(denied.peek(player.now, units), before);
                if time(&player.subject) <= Some(player.now) {
                    prop_assert_eq!(denied.state, player.subject.state.clone());
                }
            }
        }
    }
}

/// A bucket emptied an hour ahead of the clock would lock everybody out for an hour if its time stood.
#[test]
fn a_clock_that_was_an_hour_ahead_locks_nobody_out_for_an_hour() {
    for algorithm in tollgate_core::Algorithm::ALL {
        let ten = "10/minute".parse().expect("legal");
        let policy = Policy::new("clock", algorithm, ten).expect("legal");
        let mut subject = Subject::new(&policy);
        let now = 1_000_000_000_000_000;
        assert!(subject.hit(at(now + 3_600_000_000), 10).allowed);
        let denied = subject.step(at(now), Op::Hit(cost(1)));
        assert!(!denied.is_allowed(), "{algorithm}");
        assert!(subject.hit(at(now + 120_000_000), 1).allowed, "{algorithm}");
    }
}

/// Two nodes a second apart, writing in turn: the one behind must not make the other refill the second again and again.
#[test]
fn a_node_a_second_behind_gains_at_most_that_second_at_each_turn() {
    let policy = Policy::from(
        "5/second burst 150"
            .parse::<tollgate_core::Quota>()
            .expect("legal"),
    );
    let mut subject = Subject::new(&policy);
    let now = 1_000_000_000_000_000;
    assert!(subject.hit(at(now), 150).allowed);
    // The node that is behind sees no refill at all.
    assert!(!subject.hit(at(now - 1_000_000), 1).allowed);
    // The one ahead sees one second's worth.
    assert!(subject.hit(at(now), 5).allowed);
    assert!(!subject.hit(at(now), 1).allowed);
}
