//! What it costs to watch a memory store, block by block in turn with a plain one.
#![expect(clippy::print_stdout, reason = "a benchmark prints what it measured")]

use std::hint::black_box;
use std::time::{Duration, Instant};

use comfy_table::Table;
use tollgate_benches::watched::{record, watched};
use tollgate_benches::{names_in_turn, tollgate, warm_tollgate};

/// Calls in a block: few enough that most blocks run without an interruption.
const BLOCK: usize = 4_000;
const ROUNDS: usize = 500;

fn main() {
    let mut table = Table::new();
    table.set_header(["", "keys", "plain", "watched", "ratio"]);
    for (case, timed) in [
        ("no recorder", false),
        ("Prometheus", false),
        ("Prometheus, timed", true),
    ] {
        if case == "Prometheus" {
            record();
        }
        for keys in [1, 1_000] {
            let (plain, watched) = compare(keys, timed);
            let permille = watched * 1_000 / plain;
            table.add_row([
                case.to_owned(),
                keys.to_string(),
                nanos(plain),
                nanos(watched),
                format!("{}.{:03}", permille / 1_000, permille % 1_000),
            ]);
        }
    }
    println!("{table}");
}

/// Tenths of a nanosecond for one hit on a plain store and on a watched one: of blocks that ran in turn, the lowest
/// decile.
fn compare(keys: u32, timed: bool) -> (u128, u128) {
    let names = names_in_turn(keys, BLOCK);
    let plain = tollgate();
    warm_tollgate(&plain, &names);
    let watched = watched(timed);
    let mut times = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        times
            .0
            .push(took(&names, |name| tollgate_benches::hit(&plain, name)));
        times.1.push(took(&names, |name| {
            tollgate_benches::watched::hit(&watched, name)
        }));
    }
    (undisturbed(times.0), undisturbed(times.1))
}

fn took(names: &[String], hit: impl Fn(&str) -> bool) -> Duration {
    let start = Instant::now();
    for name in names {
        black_box(hit(black_box(name)));
    }
    start.elapsed()
}

fn undisturbed(mut times: Vec<Duration>) -> u128 {
    times.sort_unstable();
    times[times.len() / 10].as_nanos() * 10 / u128::try_from(BLOCK).expect("it fits")
}

fn nanos(tenths: u128) -> String {
    format!("{}.{} ns", tenths / 10, tenths % 10)
}
