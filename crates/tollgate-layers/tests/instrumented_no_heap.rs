//! Whoever watches a store allocates nothing for a hit, recorded or not.

use allocation_counter::measure;
use futures::FutureExt as _;
use metrics_util::debugging::DebuggingRecorder;
use tollgate_layers::Instrumented;
use tollgate_memory::{Limiter, ManualClock, MemoryStore, Quota};

type Watched = Limiter<Instrumented<MemoryStore<ManualClock>>>;

fn limiter() -> Watched {
    let builder = MemoryStore::builder().clock(ManualClock::default());
    let store = builder.build().expect("the capacity is legal");
    Limiter::new(Instrumented::new(store), Quota::per_hour(1_000))
}

/// What a hundred hits allocate once subject, policy and recorder are known; some are denied.
fn allocations(limiter: &Watched, hit: impl Fn(&Watched)) -> u64 {
    for _ in 0..950 {
        hit(limiter);
    }
    let info = measure(|| {
        for _ in 0..100 {
            hit(limiter);
        }
    });
    info.count_total
}

fn now(limiter: &Watched) {
    let _ = limiter.hit_now("user:42").expect("the store answers");
}

fn awaited(limiter: &Watched) {
    let answer = limiter.hit("user:42").now_or_never();
    let _ = answer
        .expect("it is ready at once")
        .expect("the store answers");
}

#[test]
fn a_hit_that_nobody_records_allocates_nothing() {
    assert_eq!(allocations(&limiter(), now), 0);
    assert_eq!(allocations(&limiter(), awaited), 0);
}

#[test]
fn a_hit_that_is_counted_allocates_nothing() {
    let recorder = DebuggingRecorder::new();
    let counted = metrics::with_local_recorder(&recorder, || allocations(&limiter(), now));
    assert_eq!(counted, 0);
}
