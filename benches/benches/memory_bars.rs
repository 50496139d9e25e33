//! Tollgate's memory store against governor's keyed limiter, block by block in turn, and the bars it has to pass.
#![expect(clippy::print_stdout, reason = "a benchmark prints what it measured")]

use std::hint::black_box;
use std::sync::Barrier;
use std::time::{Duration, Instant};

use comfy_table::Table;
use governor::DefaultKeyedRateLimiter;
use tollgate_benches::{
    check, governor, hit, names_in_turn, subjects, tollgate, tollgate_of, warm_governor,
    warm_tollgate, zipf,
};
use tollgate_memory::{Limiter, MemoryStore};

/// Calls in a block: few enough that most blocks run without an interruption.
const BLOCK: usize = 4_000;
const ROUNDS: usize = 500;
/// Calls of each thread in a block: enough that the threads meet for most of it.
const THREADED_BLOCK: usize = 40_000;

/// What a call costs here and there, in tenths of a nanosecond.
struct Comparison {
    ours: u128,
    theirs: u128,
}

impl Comparison {
    /// Of blocks that ran in turn, the lowest decile: what a call costs while nobody else wants the machine.
    fn undisturbed(ours: Vec<Duration>, theirs: Vec<Duration>) -> Self {
        Self {
            ours: per_call(quantile(ours, 10), BLOCK),
            theirs: per_call(quantile(theirs, 10), BLOCK),
        }
    }

    /// Of blocks that ran in turn, the median, for threads: the least disturbed blocks are those that hardly met.
    fn usual(ours: Vec<Duration>, theirs: Vec<Duration>) -> Self {
        Self {
            ours: per_call(quantile(ours, 2), THREADED_BLOCK),
            theirs: per_call(quantile(theirs, 2), THREADED_BLOCK),
        }
    }

    /// Of blocks that ran in turn, the mean, for work that is put off: growing, and making room.
    fn in_all(ours: &[Duration], theirs: &[Duration]) -> Self {
        let mean = |times: &[Duration]| per_call(times.iter().sum(), times.len() * BLOCK);
        Self {
            ours: mean(ours),
            theirs: mean(theirs),
        }
    }

    const fn permille(&self) -> u128 {
        self.ours * 1_000 / self.theirs
    }
}

/// The time that one in `part` does not exceed.
fn quantile(mut times: Vec<Duration>, part: usize) -> Duration {
    times.sort_unstable();
    times[times.len() / part]
}

/// Tenths of a nanosecond for one of so many calls.
fn per_call(time: Duration, calls: usize) -> u128 {
    time.as_nanos() * 10 / u128::try_from(calls).expect("it fits")
}

fn timed(block: impl FnOnce()) -> Duration {
    let start = Instant::now();
    block();
    start.elapsed()
}

/// The longest time that one of `threads` threads takes for its part of `block`, all of them having begun together.
fn in_threads(threads: usize, block: &[String], work: impl Fn(&[String]) + Sync) -> Duration {
    if threads == 1 {
        return timed(|| work(block));
    }
    let start = Barrier::new(threads);
    std::thread::scope(|scope| {
        let parts: Vec<_> = block
            .chunks(block.len() / threads)
            .map(|part| {
                let (work, start) = (&work, &start);
                scope.spawn(move || {
                    start.wait();
                    timed(|| work(part))
                })
            })
            .collect();
        let times = parts
            .into_iter()
            .map(|part| part.join().expect("no thread panics"));
        times.max().expect("there are threads")
    })
}

fn row(table: &mut Table, what: &str, comparison: &Comparison, bar: u128) {
    let Comparison { ours, theirs } = comparison;
    let permille = comparison.permille();
    let verdict = if permille <= bar { "yes" } else { "NO" };
    table.add_row([
        what.to_owned(),
        format!("{}.{} ns", ours / 10, ours % 10),
        format!("{}.{} ns", theirs / 10, theirs % 10),
        format!("{}.{:03}", permille / 1_000, permille % 1_000),
        format!("{}.{:03}", bar / 1_000, bar % 1_000),
        verdict.to_owned(),
    ]);
}

/// Keys in use, all of them `known`: `traffic` has them in the order in which they are hit, each at hand as the subject
/// of a request is.
fn warm(
    table: &mut Table,
    what: &str,
    (known, traffic): (&[String], &[String]),
    threads: usize,
    bar: u128,
) {
    let (ours, theirs) = (tollgate(), governor());
    warm_tollgate(&ours, known);
    warm_governor(&theirs, known);
    let size = if threads == 1 {
        BLOCK
    } else {
        THREADED_BLOCK * threads
    };
    let traffic: Vec<String> = traffic
        .iter()
        .cycle()
        .take(traffic.len().max(2 * size))
        .cloned()
        .collect();
    let blocks: Vec<&[String]> = traffic.chunks_exact(size).collect();
    let (mut here, mut there) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS * BLOCK * threads / size {
        // Different blocks, so that neither side finds the subjects in the cache because the other was there before.
        let block = blocks[round % blocks.len()];
        let other = blocks[(round + blocks.len() / 2) % blocks.len()];
        here.push(in_threads(threads, block, |part| hit_all(&ours, part)));
        there.push(in_threads(threads, other, |part| check_all(&theirs, part)));
    }
    let comparison = if threads == 1 {
        Comparison::undisturbed(here, there)
    } else {
        Comparison::usual(here, there)
    };
    row(table, what, &comparison, bar);
}

fn hit_all(limiter: &Limiter<MemoryStore>, traffic: &[String]) {
    for name in traffic {
        black_box(hit(limiter, black_box(name)));
    }
}

fn check_all(limiter: &DefaultKeyedRateLimiter<String>, traffic: &[String]) {
    for name in traffic {
        black_box(check(limiter, black_box(name)));
    }
}

fn flood(table: &mut Table) {
    const CAPACITY: u32 = 100_000;
    const FLOOD: usize = 2_000_000;
    let names = subjects(CAPACITY + u32::try_from(FLOOD).expect("it fits"));
    let (filling, flood) = names.split_at(CAPACITY as usize);
    let (ours, theirs) = (tollgate_of(u64::from(CAPACITY)), governor());
    hit_all(&ours, filling);
    check_all(&theirs, filling);
    let (mut here, mut there) = (Vec::new(), Vec::new());
    let (first, second) = flood.split_at(flood.len() / 2);
    for (block, other) in first.chunks_exact(BLOCK).zip(second.chunks_exact(BLOCK)) {
        here.push(timed(|| hit_all(&ours, block)));
        there.push(timed(|| check_all(&theirs, other)));
    }
    let comparison = Comparison::in_all(&here, &there);
    row(table, "never-seen keys, store full", &comparison, 1_500);

    let ours = tollgate_of(u64::from(CAPACITY));
    let each = |name: &String| timed(|| assert!(hit(&ours, name)));
    percentiles(
        "never-seen keys, store full",
        flood.iter().map(each).collect(),
    );
    let ours = tollgate();
    let each = |name: &String| timed(|| assert!(hit(&ours, name)));
    percentiles(
        "never-seen keys, store growing to a million",
        flood.iter().map(each).collect(),
    );
}

fn percentiles(what: &str, mut times: Vec<Duration>) {
    times.sort_unstable();
    let at = |part: usize| times[times.len() - 1 - times.len() / part];
    println!(
        "{what}: {} calls, median {:?}, p99.9 {:?}, p99.99 {:?}, longest {:?}",
        times.len(),
        at(2),
        at(1_000),
        at(10_000),
        times[times.len() - 1]
    );
}

fn main() {
    let mut table = Table::new();
    table.set_header(["", "tollgate", "governor", "ratio", "bar", "passed"]);
    let hot = names_in_turn(1, 2 * BLOCK);
    let thousand = names_in_turn(1_000, 2 * BLOCK);
    let names = subjects(1_000_000);
    let order = zipf(1_000_000, 1_000_000);
    let million: Vec<String> = order.iter().map(|index| names[*index].clone()).collect();
    for (threads, bars, suffix) in [
        (1, [800, 800, 600], ""),
        (2, [950, 950, 950], ", two threads"),
    ] {
        for (what, traffic, bar) in [
            ("one hot key", (&hot[..], &hot[..]), bars[0]),
            ("1,000 keys", (&thousand, &thousand), bars[1]),
            ("1,000,000 keys, zipf", (&names, &million), bars[2]),
        ] {
            warm(
                &mut table,
                &format!("{what}{suffix}"),
                traffic,
                threads,
                bar,
            );
        }
    }
    flood(&mut table);
    println!("{table}");
}
