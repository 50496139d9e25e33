//! Bytes per idle key: Tollgate's memory store and governor's keyed limiter, as an allocator counts them.

#![expect(clippy::print_stdout, reason = "a benchmark prints what it measured")]

use std::alloc::System;

use comfy_table::Table;
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use tollgate_benches::{governor, subjects, tollgate_of, warm_governor, warm_tollgate};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Bytes per key that `fill` leaves allocated.
fn bytes_per_key<T>(keys: u32, fill: impl FnOnce() -> T) -> usize {
    let region = Region::new(ALLOCATOR);
    let filled = fill();
    let change = region.change();
    drop(filled);
    let left = change.bytes_allocated - change.bytes_deallocated;
    left / usize::try_from(keys).expect("it fits")
}

fn main() {
    let mut table = Table::new();
    table.set_header(["keys", "state", "tollgate", "governor", "ratio"]);
    let mut row = |keys: u32, state: &str, ours: usize, theirs: usize| {
        let permille = ours * 1_000 / theirs;
        table.add_row([
            keys.to_string(),
            state.to_owned(),
            ours.to_string(),
            theirs.to_string(),
            format!("{}.{:03}", permille / 1_000, permille % 1_000),
        ]);
    };
    for keys in [100_000, 700_000, 1_000_000] {
        let names = subjects(keys);
        let theirs = bytes_per_key(keys, || {
            let limiter = governor();
            warm_governor(&limiter, &names);
            limiter
        });
        let ours = bytes_per_key(keys, || {
            let limiter = tollgate_of(1_000_000);
            warm_tollgate(&limiter, &names);
            limiter
        });
        row(keys, "with room", ours, theirs);
        // Half as much room again is asked for, so that the keys in use are the clerk's and the others overflow.
        let ours = bytes_per_key(keys, || {
            let limiter = tollgate_of(u64::from(keys / 2));
            warm_tollgate(&limiter, &names);
            limiter
        });
        row(keys / 2, "full", ours * 2, theirs);
    }
    println!("{table}");
}
