//! Instructions of a thousand hits on a memory store: plain, watched while nobody records, and watched by a recorder.
#![expect(
    missing_docs,
    unused_qualifications,
    clippy::exit,
    reason = "the harness makes public items of the functions, writes paths in full, and ends the process itself"
)]

use std::hint::black_box;

use gungraun::{library_benchmark, library_benchmark_group, main};
use tollgate_benches::watched::{Watched, record, watched};
use tollgate_benches::{hit, names_in_turn, tollgate, warm_tollgate};
use tollgate_memory::{Limiter, MemoryStore};

const CALLS: usize = 1_000;

fn plain() -> (Limiter<MemoryStore>, Vec<String>) {
    let names = names_in_turn(1, CALLS);
    let limiter = tollgate();
    warm_tollgate(&limiter, &names);
    (limiter, names)
}

fn unrecorded() -> (Watched, Vec<String>) {
    (watched(false), names_in_turn(1, CALLS))
}

fn recorded() -> (Watched, Vec<String>) {
    record();
    unrecorded()
}

fn timed() -> (Watched, Vec<String>) {
    record();
    (watched(true), names_in_turn(1, CALLS))
}

#[library_benchmark]
#[bench::hot_key(setup = plain)]
fn of_a_plain_store(
    (limiter, names): (Limiter<MemoryStore>, Vec<String>),
) -> (Limiter<MemoryStore>, Vec<String>) {
    for name in &names {
        black_box(hit(&limiter, black_box(name)));
    }
    (limiter, names)
}

#[library_benchmark]
#[bench::no_recorder(setup = unrecorded)]
#[bench::prometheus(setup = recorded)]
#[bench::prometheus_and_timed(setup = timed)]
fn of_a_watched_store((limiter, names): (Watched, Vec<String>)) -> (Watched, Vec<String>) {
    for name in &names {
        black_box(tollgate_benches::watched::hit(&limiter, black_box(name)));
    }
    (limiter, names)
}

library_benchmark_group!(
    name = a_thousand_hits,
    benchmarks = [of_a_plain_store, of_a_watched_store]
);

main!(library_benchmark_groups = a_thousand_hits);
