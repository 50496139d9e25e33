//! Time per hit of the memory store, and of governor's keyed limiter in the same run.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use tollgate_benches::{
    check, governor, hit, names_in_turn, subjects, tollgate, warm_governor, warm_tollgate, zipf,
};

/// One thread, keys in use.
fn warm(criterion: &mut Criterion, name: &str, known: &[String], traffic: &[String]) {
    let mut group = criterion.benchmark_group(name);
    group.throughput(Throughput::Elements(1));
    let limiter = tollgate();
    warm_tollgate(&limiter, known);
    let mut subjects = traffic.iter().cycle();
    group.bench_function("tollgate", |bencher| {
        bencher.iter(|| subjects.next().map(|name| hit(&limiter, black_box(name))));
    });
    let limiter = governor();
    warm_governor(&limiter, known);
    let mut subjects = traffic.iter().cycle();
    group.bench_function("governor", |bencher| {
        bencher.iter(|| subjects.next().map(|name| check(&limiter, black_box(name))));
    });
    group.finish();
}

fn hits(criterion: &mut Criterion) {
    let hot = names_in_turn(1, 1);
    warm(criterion, "one hot key", &hot, &hot);
    let thousand = names_in_turn(1_000, 1_000);
    warm(criterion, "1,000 keys", &thousand, &thousand);
    let known = subjects(1_000_000);
    let order = zipf(1_000_000, 1_000_000);
    let traffic: Vec<String> = order.iter().map(|index| known[*index].clone()).collect();
    warm(criterion, "1,000,000 keys, zipf", &known, &traffic);
}

criterion_group!(memory, hits);
criterion_main!(memory);
