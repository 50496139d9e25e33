//! By the store's own clock a denial ends no later than in the store, however long the call took.

use std::time::Duration;

use futures::executor::block_on;
use proptest::prelude::*;
use proptest::sample::select;
use tollgate_core::{
    Algorithm, Batch, Capabilities, Check, Key, ManualClock, PolicyDecision, Quota, Result, Source,
    Store, Timestamp, Verdicts,
};
use tollgate_layers::{DenyCache, DenyCacheOptions};

use crate::stores::{Counter, Memory, memory, peek};

/// When the whole of a denied batch fits.
pub(crate) fn retry_after(checks: &[Check<'_>], verdicts: &Verdicts) -> Option<Duration> {
    let waits = checks.iter().enumerate().map(|(index, check)| {
        let cost = check.op.cost();
        PolicyDecision::from_verdicts(check.policy, verdicts, index, cost, false).retry_after()
    });
    waits
        .into_iter()
        .try_fold(Duration::ZERO, |longest, wait| Some(longest.max(wait?)))
}

/// A store some way off: time goes by on the way there and on the way back.
#[derive(Debug)]
struct Distant {
    store: Memory,
    store_clock: ManualClock,
    local_clock: ManualClock,
    there: Duration,
    back: Duration,
}

impl Distant {
    fn pass(&self, time: Duration) {
        self.store_clock.advance(time);
        self.local_clock.advance(time);
    }
}

impl Store for Distant {
    async fn apply<'a>(&'a self, batch: Batch<'a>) -> Result<Verdicts> {
        self.pass(self.there);
        let answer = self.store.apply(batch).await;
        self.pass(self.back);
        answer
    }

    async fn reset<'a>(&'a self, keys: &'a [Key<'a>]) -> Result<u64> {
        self.store.reset(keys).await
    }

    fn capabilities(&self) -> Capabilities {
        self.store.capabilities()
    }
}

fn distant(there: Duration, back: Duration) -> DenyCache<Distant, ManualClock> {
    let store_clock = ManualClock::default();
    // Another epoch: only what goes by is compared.
    let local_clock = ManualClock::new(Timestamp::from_micros(77).unwrap());
    let distant = Distant {
        store: memory(&store_clock),
        store_clock,
        local_clock: local_clock.clone(),
        there,
        back,
    };
    let options = DenyCacheOptions::new().max_age(Duration::from_secs(3600));
    DenyCache::with_options(distant, options)
        .unwrap()
        .clock(local_clock)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn who_is_denied_from_memory_is_denied_by_the_store_at_that_instant(
        algorithm in select(Algorithm::ALL.to_vec()),
        there in 0..=60_000_u64,
        back in 0..=60_000_u64,
        waits in prop::collection::vec(0..=40_000_u64, 1..80),
    ) {
        let (there, back) = (Duration::from_micros(there), Duration::from_micros(back));
        let cache = distant(there, back);
        let counter = Counter::new(algorithm, Quota::per_second(3));
        for wait in waits {
            cache.inner().pass(Duration::from_micros(wait));
            let answer = counter.hit(&cache, 1);
            if answer.source() == Source::DenyCache {
                let truth = counter.ask(&cache.inner().store, peek(1));
                prop_assert!(!truth.is_allowed());
                let checks = [counter.check(peek(1))];
                let told = answer.at() + retry_after(&checks, &answer).unwrap();
                let true_end = truth.at() + retry_after(&checks, &truth).unwrap();
                prop_assert_eq!(told, true_end, "on the store's clock both end at one instant");
                // Ahead of the store's clock by the way there, at most.
                prop_assert!(answer.at() >= truth.at());
                prop_assert!(answer.at() <= truth.at() + there);
            }
        }
    }
}

#[test]
fn at_the_end_of_the_denial_the_store_is_asked_and_a_microsecond_before_it_is_not() {
    let cache = distant(Duration::ZERO, Duration::from_millis(30));
    let counter = Counter::new(Algorithm::FixedWindow, Quota::per_second(1));
    assert!(counter.hit(&cache, 1).is_allowed());
    assert_eq!(counter.hit(&cache, 1).source(), Source::Store);
    // The window began at zero, and two answers took 30 ms each to come back.
    cache.inner().pass(Duration::from_micros(939_999));
    let last = counter.hit(&cache, 1);
    assert_eq!(last.source(), Source::DenyCache);
    let left = retry_after(&[counter.check(peek(1))], &last);
    assert_eq!(left, Some(Duration::from_micros(1)));
    cache.inner().pass(Duration::from_micros(1));
    let first = counter.hit(&cache, 1);
    assert_eq!((first.source(), first.is_allowed()), (Source::Store, true));
}

#[test]
fn instants_that_batches_name_and_the_stores_own_clock_are_not_mixed() {
    let clock = ManualClock::default();
    let cache = DenyCache::new(memory(&clock)).clock(clock.clone());
    let counter = Counter::new(Algorithm::TokenBucket, Quota::per_second(1));
    counter.hit(&cache, 1);
    assert_eq!(counter.hit(&cache, 1).source(), Source::Store);
    let check = counter.check(peek(1));
    let named =
        Batch::of_one(&check).at(Some(Timestamp::from_micros(1_000_000_000_000_001).unwrap()));
    let answer = block_on(cache.apply(named)).unwrap();
    assert_eq!(answer.source(), Source::Store);
    assert_eq!(counter.hit(&cache, 1).source(), Source::DenyCache);
}
