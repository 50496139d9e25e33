//! Tollgate's memory store against governor's keyed limiter, block by block in turn, and the bars it has to pass.

use std::hint::black_box;
use std::time::{Duration, Instant};

use comfy_table::Table;
use tollgate_benches::{check, governor, hit, subjects, tollgate, tollgate_of, zipf};

const BLOCK: usize = 200_000;
const ROUNDS: usize = 31;

/// The median time of one call and the median ratio of two blocks that ran one after the other.
struct Comparison {
    ours: u128,
    theirs: u128,
    percent: u128,
}

fn compare(mut ours: impl FnMut(), mut theirs: impl FnMut(), calls: usize) -> Comparison {
    let calls = u128::try_from(calls).expect("it fits");
    let mut time = |block: &mut dyn FnMut()| {
        let start = Instant::now();
        block();
        start.elapsed().as_nanos()
    };
    let (mut a, mut b, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let (one, other) = (time(&mut ours), time(&mut theirs));
        a.push(one);
        b.push(other);
        ratios.push(one * 1_000 / other.max(1));
    }
    Comparison {
        ours: median(a) * 10 / calls,
        theirs: median(b) * 10 / calls,
        percent: median(ratios),
    }
}

fn median(mut values: Vec<u128>) -> u128 {
    values.sort_unstable();
    values[values.len() / 2]
}

/// Runs `threads` threads that each do `work`.
fn in_threads(threads: usize, work: impl Fn(usize) + Sync) {
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let work = &work;
            scope.spawn(move || work(thread));
        }
    });
}

fn row(table: &mut Table, what: &str, comparison: &Comparison, bar: u128) {
    let Comparison {
        ours,
        theirs,
        percent,
    } = comparison;
    let verdict = if *percent <= bar { "yes" } else { "NO" };
    table.add_row([
        what.to_owned(),
        format!("{}.{} ns", ours / 10, ours % 10),
        format!("{}.{} ns", theirs / 10, theirs % 10),
        format!("{}.{:03}", percent / 1_000, percent % 1_000),
        format!("{}.{:03}", bar / 1_000, bar % 1_000),
        verdict.to_owned(),
    ]);
}

fn warm(table: &mut Table, what: &str, count: u32, order: &[usize], threads: usize, bar: u128) {
    let names = subjects(count);
    let (ours, theirs) = (tollgate(), governor());
    for name in &names {
        assert!(hit(&ours, name) && check(&theirs, name));
        assert!(hit(&ours, name) && check(&theirs, name));
    }
    let run = |call: &(dyn Fn(&String) + Sync)| {
        if threads == 1 {
            order.iter().for_each(|index| call(&names[*index]));
        } else {
            in_threads(threads, |thread| {
                let rotated = order.iter().cycle().skip(thread * 1_009).take(order.len());
                rotated.for_each(|index| call(&names[*index]));
            });
        }
    };
    let comparison = compare(
        || {
            run(&|name| {
                black_box(hit(&ours, black_box(name)));
            });
        },
        || {
            run(&|name| {
                black_box(check(&theirs, black_box(name)));
            });
        },
        order.len() * threads,
    );
    row(table, what, &comparison, bar);
}

fn flood(table: &mut Table) {
    const CAPACITY: u32 = 100_000;
    let names = subjects(CAPACITY + u32::try_from(BLOCK * ROUNDS).expect("it fits"));
    let ours = tollgate_of(u64::from(CAPACITY));
    let (filling, flood) = names.split_at(CAPACITY as usize);
    filling.iter().for_each(|name| assert!(hit(&ours, name)));
    let mut blocks = flood.chunks(BLOCK);
    let mut other_blocks = flood.chunks(BLOCK);
    let mut slow = Vec::new();
    let theirs = governor();
    let comparison = compare(
        || {
            for name in blocks.next().expect("there is a block per round") {
                black_box(hit(&ours, black_box(name)));
            }
        },
        || {
            for name in other_blocks.next().expect("there is a block per round") {
                black_box(check(&theirs, black_box(name)));
            }
        },
        BLOCK,
    );
    row(table, "flood of new keys when full", &comparison, 1_500);

    for name in flood {
        let start = Instant::now();
        black_box(hit(&ours, black_box(name)));
        slow.push(start.elapsed());
    }
    percentiles("flood of new keys when full", slow);
    let mut slow = Vec::new();
    let ours = tollgate();
    for name in flood {
        let start = Instant::now();
        black_box(hit(&ours, black_box(name)));
        slow.push(start.elapsed());
    }
    percentiles("growth from empty to a million and beyond", slow);
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
    let hot = vec![0; BLOCK];
    let thousand: Vec<usize> = (0..BLOCK).map(|n| n * 7_919 % 1_000).collect();
    let million = zipf(1_000_000, 5 * BLOCK);
    warm(&mut table, "one hot key", 1, &hot, 1, 800);
    warm(&mut table, "1,000 keys", 1_000, &thousand, 1, 800);
    warm(&mut table, "1,000,000 keys, zipf", 1_000_000, &million, 1, 600);
    warm(&mut table, "one hot key, two threads", 1, &hot, 2, 950);
    warm(&mut table, "1,000 keys, two threads", 1_000, &thousand, 2, 950);
    warm(&mut table, "1,000,000 keys, zipf, two threads", 1_000_000, &million, 2, 950);
    flood(&mut table);
    println!("{table}");
}
