//! What a timeout and a breaker add to a call, what an open breaker's refusal costs, and what blocking costs.

use std::hint::black_box;
use std::time::Duration;

use criterion::{Criterion, criterion_group, criterion_main};
use tollgate_benches::{hit, tollgate};
use tollgate_layers::{Blocking, Breaker, BreakerOptions, Timeout};
use tollgate_memory::{
    Batch, Capabilities, Check, Cost, Error, ErrorKind, InProcessStore, Key, Limiter, MemoryStore,
    Op, Policy, Quota, Result, Space, Store, Verdicts,
};

const SUBJECT: &str = "user:0012345";

/// A store that is always away.
#[derive(Debug)]
struct Away;

impl Store for Away {
    async fn apply<'a>(&'a self, batch: Batch<'a>) -> Result<Verdicts> {
        self.judge(&batch)
    }

    async fn reset<'a>(&'a self, _: &'a [Key<'a>]) -> Result<u64> {
        Err(Error::new(ErrorKind::Unavailable, "nobody answers"))
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::ALL
    }
}

impl InProcessStore for Away {
    fn judge(&self, _: &Batch<'_>) -> Result<Verdicts> {
        Err(Error::new(ErrorKind::Unavailable, "nobody answers"))
    }
}

fn around<S: Store>(wrap: impl FnOnce(MemoryStore) -> S) -> Limiter<S> {
    let bare = tollgate();
    let policies = bare.policies().clone();
    Limiter::new(wrap(bare.store().clone()), policies)
}

/// Calls that are let through: the difference to the bare store is the wrapper's.
fn closed(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("closed");
    let bare = tollgate();
    group.bench_function("bare", |bencher| {
        bencher.iter(|| hit(&bare, black_box(SUBJECT)));
    });
    let breaker = around(Breaker::new);
    group.bench_function("breaker", |bencher| {
        bencher.iter(|| breaker.hit_now(black_box(SUBJECT)).is_ok());
    });
    let both = around(|store| Breaker::new(Timeout::new(store)));
    group.bench_function("breaker and timeout", |bencher| {
        bencher.iter(|| both.hit_now(black_box(SUBJECT)).is_ok());
    });
    let blocking = Blocking::new(around(Timeout::new)).expect("a thread can be started");
    group.bench_function("blocking", |bencher| {
        bencher.iter(|| blocking.hit(black_box(SUBJECT)).is_ok());
    });
    group.finish();
}

/// A call that is refused, beside one that the store fails.
fn open(criterion: &mut Criterion) {
    let policy = Policy::from(Quota::per_hour(1));
    let space = Space::new("", "", &policy);
    let check = Check {
        key: Key::new(&space, SUBJECT.as_bytes()).expect("there is a subject"),
        policy: &policy,
        op: Op::Hit(Cost::ONE),
    };
    let batch = Batch::of_one(&check);
    let hour = Duration::from_secs(3_600);
    let options = BreakerOptions::new().failures(1).backoff(hour, hour);
    let breaker = Breaker::with_options(Away, options).expect("the options are legal");
    let mut group = criterion.benchmark_group("open");
    group.bench_function("failing store", |bencher| {
        bencher.iter(|| Away.judge(black_box(&batch)).is_err());
    });
    group.bench_function("breaker", |bencher| {
        bencher.iter(|| breaker.judge(black_box(&batch)).is_err());
    });
    group.finish();
}

criterion_group!(layers, closed, open);
criterion_main!(layers);
