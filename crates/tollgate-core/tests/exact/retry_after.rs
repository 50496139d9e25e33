//! What is denied is admitted at its retry time, and not one microsecond earlier.

use proptest::prelude::*;
use tollgate_core::Timestamp;

use crate::draw::{cases, open_policies};
use crate::play::Player;
use crate::script::{Move, Step, actions, anywhere, forwards, scripts, units};
use crate::subject::{Answer, Subject};

/// Whether `subject`, left alone from `now` on, is denied until `wait` has passed and admitted then.
fn is_admitted_exactly_after(subject: &Subject, now: Timestamp, wait: u64, units: u64) {
    let then = now.as_micros().saturating_add(wait);
    if then > Timestamp::MAX.as_micros() {
        return;
    }
    let hit_at = |micros| {
        let at = Timestamp::saturating_from_micros(micros);
        subject.clone().hit(at, units).allowed
    };
    assert!(hit_at(then), "{units} units do not fit after {wait}");
    assert!(!hit_at(then - 1), "{units} units fit before {wait}");
}

fn check(subject: &Subject, now: Timestamp, units: u64, answer: Answer) {
    match answer.retry_after {
        Some(0) => assert!(answer.allowed),
        Some(wait) => is_admitted_exactly_after(subject, now, wait, units),
        None => assert!(units > subject.policy.rule().capacity()),
    }
}

proptest! {
    #![proptest_config(cases(3_000))]

    #[test]
    fn a_denied_hit_is_admitted_at_its_retry_time_and_not_a_microsecond_earlier(
        policy in open_policies(),
        (start, steps) in scripts(anywhere(), actions(), 24),
        units in units(),
    ) {
        let mut player = Player::new(&policy, start);
        for step in steps {
            player.play(step);
            let mut subject = player.subject.clone();
            let units = units.count(policy.rule().capacity(), player.remaining());
            let answer = subject.hit(player.now, units);
            check(&subject, player.now, units, answer);
        }
    }

    #[test]
    fn a_peek_names_the_same_retry_time_as_the_hit_it_stands_for(
        policy in open_policies(),
        (start, steps) in scripts(forwards(), actions(), 24),
        units in units(),
    ) {
        let mut player = Player::new(&policy, start);
        for step in steps {
            player.play(step);
            let units = units.count(policy.rule().capacity(), player.remaining());
            let peeked = player.subject.peek(player.now, units);
            check(&player.subject, player.now, units, peeked);
            let hit = player.subject.clone().hit(player.now, units);
            prop_assert_eq!((peeked.allowed, peeked.retry_after), (hit.allowed, hit.retry_after));
        }
    }

    /// A client that comes back exactly when it is told to is never turned away twice.
    #[test]
    fn whoever_waits_as_told_is_admitted_every_time(
        policy in open_policies(),
        start in crate::script::starts(),
        units in proptest::collection::vec(units(), 1..40),
    ) {
        let mut player = Player::new(&policy, start);
        let mut waited = false;
        for units in units {
            let units = units.count(policy.rule().capacity(), player.remaining());
            if units > policy.rule().capacity() {
                continue;
            }
            let moves = if waited { Move::Retry(0) } else { Move::Stay };
            let answer = player.play(Step::hit(moves, units)).expect("a hit is answered");
            if answer.allowed {
                waited = false;
                continue;
            }
            let told = answer.retry_after.expect("it fits some time");
            if told > Timestamp::MAX.as_micros() - player.now.as_micros() {
                break;
            }
            let answer = player.play(Step::hit(Move::Retry(0), units)).expect("a hit is answered");
            prop_assert!(answer.allowed);
            waited = true;
        }
    }
}
