//! Instructions of a thousand hits, Tollgate's memory store and governor's keyed limiter side by side.
//!
//! The bar is 0.70 of governor's count, on one hot key and over a thousand keys.
#![expect(
    missing_docs,
    unused_qualifications,
    clippy::exit,
    reason = "the harness makes public items of the functions, writes paths in full, and ends the process itself"
)]

use std::hint::black_box;

use governor::DefaultKeyedRateLimiter;
use gungraun::{library_benchmark, library_benchmark_group, main};
use tollgate_benches::{
    check, governor, hit, names_in_turn, tollgate, warm_governor, warm_tollgate,
};
use tollgate_memory::{Limiter, MemoryStore};

const CALLS: usize = 1_000;

fn tollgate_with(keys: u32) -> (Limiter<MemoryStore>, Vec<String>) {
    let names = names_in_turn(keys, CALLS);
    let limiter = tollgate();
    warm_tollgate(&limiter, &names);
    (limiter, names)
}

fn governor_with(keys: u32) -> (DefaultKeyedRateLimiter<String>, Vec<String>) {
    let names = names_in_turn(keys, CALLS);
    let limiter = governor();
    warm_governor(&limiter, &names);
    (limiter, names)
}

#[library_benchmark]
#[bench::hot_key(args = (1), setup = governor_with)]
#[bench::thousand_keys(args = (1_000), setup = governor_with)]
fn of_governor(
    (limiter, names): (DefaultKeyedRateLimiter<String>, Vec<String>),
) -> (DefaultKeyedRateLimiter<String>, Vec<String>) {
    for name in &names {
        black_box(check(&limiter, black_box(name)));
    }
    (limiter, names)
}

#[library_benchmark]
#[bench::hot_key(args = (1), setup = tollgate_with)]
#[bench::thousand_keys(args = (1_000), setup = tollgate_with)]
fn of_tollgate(
    (limiter, names): (Limiter<MemoryStore>, Vec<String>),
) -> (Limiter<MemoryStore>, Vec<String>) {
    for name in &names {
        black_box(hit(&limiter, black_box(name)));
    }
    (limiter, names)
}

library_benchmark_group!(
    name = a_thousand_hits,
    compare_by_id = true,
    benchmarks = [of_governor, of_tollgate]
);

main!(library_benchmark_groups = a_thousand_hits);
