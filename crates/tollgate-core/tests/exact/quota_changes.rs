//! A quota changed at run time keeps the usage already made, counted in units and rounded against the client.

use proptest::prelude::*;
use tollgate_core::{Algorithm, Quota, State, Timestamp};

use crate::draw::{cases, open_quotas, policy};
use crate::model::{Exact, exact};
use crate::play::Player;
use crate::script::{actions, anywhere, forwards, scripts};
use crate::subject::{Subject, at};

const MAX_STORED: u64 = (1 << 53) - 1;

/// Units in `state` that a period of `period` microseconds still covers at its last charge.
fn stored_units(state: &State, period: u64) -> Exact {
    match state {
        State::Bucket(bucket) => exact(bucket.level) / exact(bucket.unit),
        State::FixedWindow(window) => exact(window.count),
        State::SlidingWindow(windows) => exact(windows.count),
        State::SlidingLog(log) => {
            let last = time(state).as_micros();
            let live = log.hits().filter(|(at, _)| last - at.as_micros() < period);
            exact(live.map(|(_, units)| units).sum::<u64>())
        }
    }
}

fn time(state: &State) -> Timestamp {
    state.time().expect("something was charged")
}

proptest! {
    #![proptest_config(cases(3_000))]

    /// At the instant of the last charge, before anything can drain: the new capacity less what was used.
    #[test]
    fn a_new_quota_leaves_its_capacity_less_the_units_used(
        algorithm in proptest::sample::select(Algorithm::ALL.to_vec()),
        [old, new] in [open_quotas(), open_quotas()],
        (start, steps) in scripts(forwards(), actions(), 16),
    ) {
        let mut player = Player::new(&policy(algorithm, old), start);
        for step in steps {
            player.play(step);
        }
        let Some(state) = player.subject.state.clone() else {
            return Ok(());
        };
        prop_assume!(state.time().is_some());
        let changed = Subject { policy: policy(algorithm, new), state: Some(state.clone()) };
        let capacity = changed.policy.rule().capacity();
        let left = exact(capacity) - stored_units(&state, new.period_micros());
        let answer = changed.peek(time(&state), 1);
        let most = left.max(exact(0)).floor().to_integer();
        prop_assert!(most >= answer.remaining.into(), "{} of at most {most}", answer.remaining);

        // A sliding window may count the one before as well.
        if algorithm != Algorithm::SlidingWindow {
            prop_assert_eq!(most, answer.remaining.into());
        }
    }

    /// Of the usage before the change, no more is forgiven than the new rate drains.
    #[test]
    fn a_bucket_under_a_new_quota_drains_at_the_new_rate_from_the_last_charge_on(
        [old, new] in [open_quotas(), open_quotas()],
        (start, steps) in scripts(forwards(), actions(), 16),
        later in 0..=100_000_000_000_u64,
    ) {
        let mut player = Player::new(&policy(Algorithm::Gcra, old), start);
        for step in steps {
            player.play(step);
        }
        let Some(state @ State::Bucket(bucket)) = player.subject.state.clone() else {
            return Ok(());
        };
        let changed = policy(Algorithm::Gcra, new);
        let tollgate_core::Rule::Bucket(rule) = changed.rule() else {
            panic!("a bucket");
        };
        let kept = if bucket.unit == rule.unit() {
            exact(bucket.level)
        } else {
            let whole = stored_units(&state, new.period_micros()).ceil() * exact(rule.unit());
            whole.min(exact(MAX_STORED))
        };
        let now = at((bucket.updated.as_micros() + later).min(Timestamp::MAX.as_micros()));
        let ticks = now.as_micros() / rule.tick() - bucket.updated.as_micros() / rule.tick();
        let level = (kept - exact(ticks) * exact(rule.drain())).max(exact(0));
        let left = ((exact(rule.full()) - level) / exact(rule.unit())).max(exact(0));
        let answer = Subject { policy: changed, state: Some(state) }.peek(now, 1);
        prop_assert_eq!(left.floor().to_integer(), answer.remaining.into());
    }

    /// Whatever quota comes after whatever other, every answer stays within its bounds and every wait is exact.
    #[test]
    fn answers_stay_exact_while_quotas_change_all_the_time(
        algorithm in proptest::sample::select(Algorithm::ALL.to_vec()),
        quotas in proptest::collection::vec(open_quotas(), 2..6),
        (start, steps) in scripts(anywhere(), actions(), 32),
        changes in proptest::collection::vec(any::<prop::sample::Index>(), 32),
    ) {
        let mut player = Player::new(&policy(algorithm, quotas[0]), start);
        for (step, change) in steps.into_iter().zip(changes) {
            player.subject.policy = policy(algorithm, *change.get(&quotas));
            let capacity = player.subject.policy.rule().capacity();
            if let Some(answer) = player.play(step) {
                prop_assert!(answer.remaining <= capacity);
            }
            let mut subject = player.subject.clone();
            let wait = subject.hit(player.now, 1).retry_after.expect("one unit fits some time");
            let then = player.now.as_micros().saturating_add(wait);
            if wait > 0 && then <= Timestamp::MAX.as_micros() {
                prop_assert!(!subject.clone().hit(at(then - 1), 1).allowed);
                prop_assert!(subject.hit(at(then), 1).allowed);
            }
            let stored = player.subject.state.as_ref();
            prop_assert!(stored.is_none_or(|state| State::decode(&state.encode()).is_ok()));
        }
    }
}

#[test]
fn a_tier_that_grows_keeps_what_was_used_and_gets_the_difference() {
    let quota = |text: &str| text.parse::<Quota>().expect("legal");
    for algorithm in Algorithm::ALL {
        let mut subject = Subject::new(&policy(algorithm, quota("10/minute")));
        let now = at(1_000_000_000_000_000);
        assert!(subject.hit(now, 10).allowed);
        subject.policy = policy(algorithm, quota("100/minute"));
        assert_eq!(subject.peek(now, 1).remaining, 90, "{algorithm}");
        subject.policy = policy(algorithm, quota("7/minute"));
        assert_eq!(subject.peek(now, 1).remaining, 0, "{algorithm}");
        assert!(!subject.hit(now, 1).allowed);
        subject.policy = policy(algorithm, quota("13/minute"));
        assert_eq!(subject.hit(now, 3).remaining, 0, "{algorithm}");
    }
}

/// Half a unit used at one rate counts as a whole one at another, so nobody gains by a change.
#[test]
fn a_part_of_a_unit_counts_as_a_whole_one_under_a_rate_of_other_weights() {
    let quota = |text: &str| text.parse::<Quota>().expect("legal");
    let mut subject = Subject::new(&policy(Algorithm::TokenBucket, quota("10/second")));
    let now = 1_000_000_000_000_000;
    assert!(subject.hit(at(now), 1).allowed);
    let later = at(now + 50_000);
    assert!(subject.hit(later, 1).allowed);
    // One and a half units are in the bucket, and seven a second weigh otherwise than ten a second.
    subject.policy = policy(Algorithm::TokenBucket, quota("7/second"));
    assert_eq!(subject.peek(later, 1).remaining, 5);
}

/// Rounding up is done when the state is read; what is stored keeps its fractions until something is charged.
#[test]
fn a_hit_that_is_denied_under_another_quota_rewrites_nothing() {
    let quota = |text: &str| text.parse::<Quota>().expect("legal");
    let mut subject = Subject::new(&policy(Algorithm::TokenBucket, quota("10/second")));
    let now = 1_000_000_000_000_000;
    assert!(subject.hit(at(now), 10).allowed);
    let before = subject.state.clone();
    subject.policy = policy(Algorithm::TokenBucket, quota("7/second"));
    assert!(!subject.hit(at(now), 1).allowed);
    assert_eq!(subject.state, before);
}
