//! At its reset time a key is as good as never seen, and not one microsecond earlier. So a store may drop it then.

use proptest::prelude::*;
use tollgate_core::Timestamp;

use crate::draw::{cases, open_policies};
use crate::play::Player;
use crate::script::{actions, anywhere, forwards, scripts};
use crate::subject::{Answer, Subject};

/// The two subjects answer the same at `now`, whatever is asked.
fn assert_alike(one: &Subject, other: &Subject, now: Timestamp, units: u64) {
    assert_eq!(one.peek(now, units), other.peek(now, units));
    assert_eq!(one.clone().hit(now, units), other.clone().hit(now, units));
}

/// Something of the past is still to be seen: fewer units left, or the end of a window that has begun.
fn is_visible(answer: &Answer, capacity: u64) -> bool {
    answer.remaining < capacity || answer.reset_after > 0
}

proptest! {
    #![proptest_config(cases(2_000))]

    #[test]
    fn from_the_reset_time_on_every_sequence_is_answered_as_on_a_fresh_key(
        policy in open_policies(),
        (start, steps) in scripts(anywhere(), actions(), 16),
        (_, later) in scripts(forwards(), actions(), 16),
    ) {
        let mut used = Player::new(&policy, start);
        for step in steps {
            used.play(step);
        }
        let answer = used.subject.hit(used.now, 1);
        let reset_at = used.now.as_micros().saturating_add(answer.reset_after);
        prop_assume!(reset_at <= Timestamp::MAX.as_micros());

        let reset_at = Timestamp::saturating_from_micros(reset_at);
        let mut fresh = Player::new(&policy, reset_at);
        used.restart(reset_at);
        assert_alike(&used.subject, &fresh.subject, fresh.now, 1);
        for step in later {
            prop_assert_eq!(used.play(step), fresh.play(step));
        }
    }

    #[test]
    fn until_the_reset_time_the_past_is_visible(
        policy in open_policies(),
        (start, steps) in scripts(anywhere(), actions(), 16),
    ) {
        let mut player = Player::new(&policy, start);
        let capacity = policy.rule().capacity();
        for step in steps {
            player.play(step);
            let mut subject = player.subject.clone();
            let answer = subject.hit(player.now, 1);
            let last = player.now.as_micros().saturating_add(answer.reset_after).saturating_sub(1);
            if answer.reset_after == 0 || last > Timestamp::MAX.as_micros() {
                continue;
            }
            let last = Timestamp::saturating_from_micros(last);
            let answer = subject.peek(last, 1);
            prop_assert!(is_visible(&answer, capacity), "{answer:?}");
            prop_assert_eq!(answer.reset_after, 1);
        }
    }

    #[test]
    fn dropping_what_has_reset_changes_no_later_answer(
        policy in open_policies(),
        (start, steps) in scripts(forwards(), actions(), 40),
        drops in proptest::collection::vec(any::<bool>(), 40),
    ) {
        let mut kept = Player::new(&policy, start);
        let mut collected = kept.clone();
        for (step, drop) in steps.into_iter().zip(drops) {
            prop_assert_eq!(kept.play(step), collected.play(step));
            let now = collected.now;
            let state = &mut collected.subject.state;
            if drop && state.as_ref().is_some_and(|state| policy.rule().reset_after(state, now) == 0) {
                *state = None;
            }
        }
    }
}
