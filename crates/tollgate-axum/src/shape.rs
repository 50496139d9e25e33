//! Shaping: requests wait for their turn instead of being refused.

use std::time::Duration;

use tollgate_core::{Algorithm, Policies, Policy};

/// The same policies, with each leaky bucket's queue cut to what leaves within `max_delay`.
///
/// A queue of `B` requests at `L` per period `P` keeps the last of them for `(B - 1) * P / L`. So the store itself denies
/// what would have to wait longer, in the same step that judges everything else, and a denied request is charged
/// nothing.
pub(crate) fn shaped(policies: &Policies, max_delay: Duration) -> Policies {
    let shaped = policies.iter().map(|policy| cut(policy, max_delay));
    Policies::new(shaped)
        .expect("as many policies of the same names as before")
        .prefix(policies.prefix_name())
        .scope(policies.scope_name())
}

fn cut(policy: &Policy, max_delay: Duration) -> Policy {
    let quota = policy.quota();
    if policy.algorithm() != Algorithm::LeakyBucket {
        return policy.clone();
    }
    let within = max_delay.as_micros().saturating_mul(quota.limit().into())
        / u128::from(quota.period_micros());
    let queue = u64::try_from(within).unwrap_or(u64::MAX).saturating_add(1);
    if queue >= quota.capacity() {
        return policy.clone();
    }
    let quota = quota
        .with_burst(queue)
        .expect("a shorter queue is kept as exactly");
    policy
        .clone()
        .with_quota(quota)
        .expect("a leaky bucket has a burst")
}

#[cfg(test)]
mod tests {
    use tollgate_core::Quota;

    use super::*;

    fn queue(algorithm: Algorithm, quota: &str, max_delay: Duration) -> u64 {
        let policy = Policy::new("shaped", algorithm, quota.parse().unwrap()).unwrap();
        let policies = Policies::from(policy).prefix("p").scope("s");
        let shaped = shaped(&policies, max_delay);
        assert_eq!((shaped.prefix_name(), shaped.scope_name()), ("p", "s"));
        shaped.iter().next().unwrap().rule().capacity()
    }

    #[test]
    fn a_queue_is_as_long_as_what_leaves_in_time() {
        let leaky = |quota, delay| queue(Algorithm::LeakyBucket, quota, delay);
        let millis = Duration::from_millis;
        assert_eq!(leaky("10/second burst 100", millis(0)), 1);
        assert_eq!(leaky("10/second burst 100", millis(99)), 1);
        assert_eq!(leaky("10/second burst 100", millis(100)), 2);
        assert_eq!(leaky("10/second burst 100", millis(1000)), 11);
        assert_eq!(leaky("10/second burst 100", Duration::MAX), 100);
        assert_eq!(leaky("7/second burst 9", millis(500)), 4);
        assert_eq!(leaky("0/second", millis(500)), 0);
    }

    #[test]
    fn other_algorithms_have_no_queue_to_cut() {
        for algorithm in [Algorithm::TokenBucket, Algorithm::Gcra] {
            assert_eq!(queue(algorithm, "10/second burst 100", Duration::ZERO), 100);
        }
        assert_eq!(
            queue(Algorithm::SlidingLog, "10/second", Duration::ZERO),
            10
        );
    }

    proptest::proptest! {
        #[test]
        fn any_queue_can_be_cut(
            limit in 0..=Quota::MAX_LIMIT, few in 0..100_u64, is_few: bool, millis in 1..u64::MAX,
            burst in proptest::option::of(1..=Quota::MAX_BURST), delay: u64,
        ) {
            let limit = if is_few { few } else { limit };
            let period = Duration::from_millis(millis % 40_000_000_000).max(Quota::MIN_PERIOD);
            let quota = match burst {
                None => Quota::new(limit, period),
                Some(burst) => Quota::new_with_burst(limit, period, burst),
            };
            let Ok(policy) = quota.map(|quota| Policy::new("q", Algorithm::LeakyBucket, quota).unwrap()) else {
                return Ok(());
            };
            let delay = Duration::from_micros(delay >> (limit % 64));
            let shaped = cut(&policy, delay);
            proptest::prop_assert!(shaped.rule().capacity() <= policy.rule().capacity());
            proptest::prop_assert_eq!(shaped.rule().capacity() == 0, limit == 0);
        }
    }
}
