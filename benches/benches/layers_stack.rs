//! What each wrapper adds to a call: blocks of calls that run in turn, over a store that answers, denies or fails at once.
#![expect(clippy::print_stdout, reason = "a benchmark prints what it measured")]

use std::hint::black_box;
use std::time::{Duration, Instant};

use comfy_table::Table;
use tokio::runtime::{Builder, Runtime};
use tollgate_core::{
    Batch, Capabilities, Error, ErrorKind, InProcessStore, Key, Limiter, Quota, Result, Store,
    Verdicts,
};
use tollgate_layers::{Breaker, BreakerOptions, DenyCache, Fallback, Instrumented, Share, Timeout};
use tollgate_memory::MemoryStore;

/// Calls in a block: few enough that most blocks run without an interruption.
const BLOCK: u32 = 2_000;
const ROUNDS: usize = 400;

/// A store that has to be waited for, as one in the network has, though never for long.
#[derive(Debug)]
struct Near(MemoryStore);

impl Store for Near {
    async fn apply<'a>(&'a self, batch: Batch<'a>) -> Result<Verdicts> {
        self.0.judge(&batch)
    }

    async fn reset<'a>(&'a self, keys: &'a [Key<'a>]) -> Result<u64> {
        self.0.reset(keys).await
    }

    fn capabilities(&self) -> Capabilities {
        self.0.capabilities()
    }
}

/// A store that is down.
#[derive(Debug)]
struct Down;

impl Store for Down {
    async fn apply<'a>(&'a self, _: Batch<'a>) -> Result<Verdicts> {
        Err(Error::new(ErrorKind::Unavailable, "nobody listens"))
    }

    async fn reset<'a>(&'a self, _: &'a [Key<'a>]) -> Result<u64> {
        Err(Error::new(ErrorKind::Unavailable, "nobody listens"))
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::ALL
    }
}

struct Contender {
    name: &'static str,
    block: Box<dyn Fn(&Runtime)>,
    times: Vec<Duration>,
}

fn contender<S: Store>(name: &'static str, store: S, quota: Quota) -> Contender {
    let limiter = Limiter::new(store, quota);
    let block = move |runtime: &Runtime| {
        runtime.block_on(async {
            for _ in 0..BLOCK {
                black_box(limiter.hit(black_box("user:42")).await.is_ok());
            }
        });
    };
    Contender {
        name,
        block: Box::new(block),
        times: Vec::new(),
    }
}

fn near() -> Near {
    Near(MemoryStore::new())
}

/// A breaker that stays open once it is.
fn patient<S: Store>(store: S) -> Breaker<S> {
    let hour = Duration::from_secs(3600);
    let options = BreakerOptions::new().backoff(hour, hour);
    Breaker::with_options(store, options).expect("the backoff is legal")
}

fn standing_in<S: Store>(store: S) -> Fallback<S> {
    Fallback::new(store, Share::WHOLE)
}

fn usual<S: Store>(store: S) -> impl Store {
    let store = standing_in(patient(Timeout::new(store)));
    Instrumented::new(DenyCache::new(store))
}

fn admitted() -> Vec<Contender> {
    let plenty = Quota::per_second(1_000_000_000);
    vec![
        contender("the store alone", near(), plenty),
        contender("timeout", Timeout::new(near()), plenty),
        contender("breaker, closed", patient(near()), plenty),
        contender("fallback", standing_in(near()), plenty),
        contender("deny cache", DenyCache::new(near()), plenty),
        contender("instrumented", Instrumented::new(near()), plenty),
        contender("all of them", usual(near()), plenty),
    ]
}

fn denied() -> Vec<Contender> {
    let little = Quota::per_day(1);
    vec![
        contender("the store alone", near(), little),
        contender("deny cache", DenyCache::new(near()), little),
        contender("all of them", usual(near()), little),
    ]
}

fn down() -> Vec<Contender> {
    let plenty = Quota::per_second(1_000_000_000);
    vec![
        contender("the store alone", Down, plenty),
        contender("breaker, open", patient(Down), plenty),
        contender("fallback", standing_in(Down), plenty),
        contender(
            "breaker, open, and fallback",
            standing_in(patient(Down)),
            plenty,
        ),
        contender("all of them", usual(Down), plenty),
    ]
}

fn main() -> std::io::Result<()> {
    let runtime = Builder::new_current_thread().enable_time().build()?;
    let mut table = Table::new();
    table.set_header(["the store", "around it", "a call", "added", "ratio"]);
    for (state, mut contenders) in [
        ("answers", admitted()),
        ("denies", denied()),
        ("is down", down()),
    ] {
        // The first round is for nothing.
        for round in 0..=ROUNDS {
            for contender in &mut contenders {
                let started = Instant::now();
                (contender.block)(&runtime);
                if round > 0 {
                    contender.times.push(started.elapsed());
                }
            }
        }
        let base = per_call(&mut contenders[0].times);
        for contender in &mut contenders {
            let nanos = per_call(&mut contender.times);
            table.add_row([
                state.to_owned(),
                contender.name.to_owned(),
                format!("{nanos} ns"),
                format!("{} ns", nanos.saturating_sub(base)),
                format!("{}.{:02}", nanos / base, nanos * 100 / base % 100),
            ]);
        }
    }
    println!("{table}");
    Ok(())
}

/// Nanoseconds of a call in the block that only one in ten was faster than: while nobody else wants the machine.
fn per_call(times: &mut [Duration]) -> u128 {
    times.sort_unstable();
    times[times.len() / 10].as_nanos() / u128::from(BLOCK)
}
