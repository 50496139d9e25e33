//! The Postgres store against one upsert per hit, in interleaved rounds, all through one sqlx pool of 16.
//!
//! `cargo xtask bench postgres [-- --seconds 2 --rounds 5 --only spread]`
#![expect(clippy::print_stdout, reason = "the figures go to the terminal")]

mod baseline;

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use futures::stream::{self, StreamExt, TryStreamExt};
use tollgate_core::{Algorithm, Batch, Check, Cost, Key, Op, Policy, Quota, Space, Store};
use tollgate_postgres::sqlx::PgPool;
use tollgate_postgres::sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use tollgate_postgres::{PostgresStore, PostgresStoreBuilder, SynchronousCommit, tollgate_core};
use tollgate_services::PostgresServer;

use crate::baseline::Baseline;

const TASKS: usize = 256;
const KEYS: usize = 100_000;

/// What one round of one side came to.
#[derive(Clone, Copy, Debug)]
struct Measured {
    per_second: u64,
    median: Duration,
}

/// Which key a task asks next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Keys {
    Spread,
    Hot,
}

/// One line of the result.
#[derive(Clone, Copy, Debug)]
struct Scenario {
    name: &'static str,
    tasks: usize,
    keys: Keys,
    commit: SynchronousCommit,
    denied: bool,
    /// What the ratio has to reach, in hundredths; for a latency, what it must not pass.
    bar: u64,
    latency: bool,
}

const SCENARIOS: [Scenario; 7] = [
    scenario(
        "spread keys, synchronous_commit on",
        Keys::Spread,
        SynchronousCommit::On,
        800,
    ),
    scenario(
        "spread keys, synchronous_commit off",
        Keys::Spread,
        SynchronousCommit::Off,
        500,
    ),
    scenario(
        "one hot key, synchronous_commit on",
        Keys::Hot,
        SynchronousCommit::On,
        2_500,
    ),
    scenario(
        "one hot key, synchronous_commit off",
        Keys::Hot,
        SynchronousCommit::Off,
        500,
    ),
    Scenario {
        denied: true,
        ..scenario(
            "denials on a hot key, against hits on one",
            Keys::Hot,
            SynchronousCommit::On,
            500,
        )
    },
    Scenario {
        tasks: 1,
        latency: true,
        ..scenario(
            "a lone caller's median latency, synchronous_commit on",
            Keys::Spread,
            SynchronousCommit::On,
            115,
        )
    },
    Scenario {
        tasks: 1,
        latency: true,
        ..scenario(
            "a lone caller's median latency, synchronous_commit off",
            Keys::Spread,
            SynchronousCommit::Off,
            115,
        )
    },
];

const fn scenario(name: &'static str, keys: Keys, commit: SynchronousCommit, bar: u64) -> Scenario {
    Scenario {
        name,
        tasks: TASKS,
        keys,
        commit,
        denied: false,
        bar,
        latency: false,
    }
}

struct Arguments {
    seconds: u64,
    rounds: usize,
    only: String,
    lanes: usize,
}

fn main() -> Result<()> {
    let arguments = arguments()?;
    let runtime = tokio::runtime::Runtime::new()?;
    // The disk is waited for, as in production.
    let settings = ["shared_buffers=512MB", "max_wal_size=4GB", "autovacuum=on"];
    let server = PostgresServer::start_with(&settings)?;
    runtime.block_on(run(&server, &arguments))
}

fn arguments() -> Result<Arguments> {
    let mut parsed = Arguments {
        seconds: 2,
        rounds: 5,
        only: String::new(),
        lanes: PostgresStoreBuilder::DEFAULT_LANES,
    };
    let mut words = std::env::args().skip(1).filter(|word| word != "--bench");
    while let Some(word) = words.next() {
        let value = words
            .next()
            .with_context(|| format!("{word} needs a value"))?;
        match word.as_str() {
            "--seconds" => parsed.seconds = value.parse()?,
            "--rounds" => parsed.rounds = value.parse()?,
            "--only" => parsed.only = value,
            "--lanes" => parsed.lanes = value.parse()?,
            _ => bail!("unknown option {word}; there are --seconds, --rounds, --only and --lanes"),
        }
    }
    Ok(parsed)
}

async fn run(server: &PostgresServer, arguments: &Arguments) -> Result<()> {
    let pool = |commit: &'static str| {
        let options: PgConnectOptions = server.url().parse()?;
        let options = options.options([("synchronous_commit", commit)]);
        let pool = PgPoolOptions::new().max_connections(16).min_connections(16);
        anyhow::Ok(pool.connect_lazy_with(options))
    };
    let (durable, relaxed) = (pool("on")?, pool("off")?);
    Baseline::prepare(&durable).await?;
    PostgresStore::new(durable.clone()).ensure_schema().await?;
    prefill(&relaxed).await?;
    let span = Duration::from_secs(arguments.seconds);
    println!(
        "{TASKS} tasks, pool of 16, {KEYS} keys, medians of {} rounds of {span:?}",
        arguments.rounds
    );
    println!("| scenario | baseline | Tollgate | ratio | bar |\n|---|---|---|---|---|");
    let chosen = SCENARIOS
        .into_iter()
        .filter(|scenario| scenario.name.contains(&arguments.only));
    for scenario in chosen {
        let pool = match scenario.commit {
            SynchronousCommit::On => &durable,
            _ => &relaxed,
        };
        let ours = Arc::new(Ours::new(pool, scenario, arguments.lanes)?);
        let baseline = Baseline::new(pool.clone());
        let mut theirs_seen = Vec::new();
        let mut ours_seen = Vec::new();
        for _ in 0..arguments.rounds {
            let theirs = baseline.clone();
            theirs_seen.push(
                measure(scenario, span, move |key| {
                    let baseline = theirs.clone();
                    async move { baseline.hit(&key).await }
                })
                .await?,
            );
            let ours = Arc::clone(&ours);
            ours_seen.push(
                measure(scenario, span, move |key| {
                    let ours = Arc::clone(&ours);
                    async move { ours.hit(&key).await }
                })
                .await?,
            );
        }
        report(scenario, &theirs_seen, &ours_seen);
    }
    Ok(())
}

/// Every key is there before anything is measured.
async fn prefill(pool: &PgPool) -> Result<()> {
    let baseline = Baseline::new(pool.clone());
    let ours = Ours::new(pool, SCENARIOS[1], PostgresStoreBuilder::DEFAULT_LANES)?;
    let hits = stream::iter(0..KEYS).map(|number| {
        let (baseline, ours) = (&baseline, &ours);
        async move {
            let key = subject(number);
            baseline.hit(&key).await?;
            ours.hit(&key).await
        }
    });
    hits.buffer_unordered(TASKS).try_collect().await
}

fn subject(number: usize) -> String {
    format!("user:{number:07}")
}

fn report(scenario: Scenario, theirs: &[Measured], ours: &[Measured]) {
    let hundredths = |number: u64, of: u64| number * 100 / of.max(1);
    let two = |ratio: u64| format!("{}.{:02}", ratio / 100, ratio % 100);
    if scenario.latency {
        let pick = |all: &[Measured]| median(all.iter().map(|one| one.median));
        let (theirs, ours) = (pick(theirs), pick(ours));
        let micros = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let ratio = hundredths(micros(ours), micros(theirs));
        println!(
            "| {} | {theirs:?} | {ours:?} | {} | at most {} |",
            scenario.name,
            two(ratio),
            two(scenario.bar)
        );
    } else {
        let pick = |all: &[Measured]| median(all.iter().map(|one| one.per_second));
        let (theirs, ours) = (pick(theirs), pick(ours));
        let ratio = hundredths(ours, theirs);
        println!(
            "| {} | {theirs}/s | {ours}/s | {} | at least {} |",
            scenario.name,
            two(ratio),
            two(scenario.bar)
        );
    }
}

fn median<T: Ord + Copy>(values: impl Iterator<Item = T>) -> T {
    let mut values: Vec<T> = values.collect();
    values.sort_unstable();
    values[values.len() / 2]
}

/// Runs the scenario's tasks for `span`, each asking one thing after the other.
async fn measure<H, F>(scenario: Scenario, span: Duration, hit: H) -> Result<Measured>
where
    H: Fn(String) -> F + Clone + Send + 'static,
    F: Future<Output = Result<()>> + Send,
{
    let began = Instant::now();
    let tasks = (0..scenario.tasks).map(|_| {
        let hit = hit.clone();
        tokio::spawn(async move {
            let mut latencies = Vec::new();
            while began.elapsed() < span {
                let number = match scenario.keys {
                    Keys::Hot => 0,
                    Keys::Spread => fastrand::usize(0..KEYS),
                };
                let asked = Instant::now();
                hit(subject(number)).await?;
                latencies.push(asked.elapsed());
            }
            anyhow::Ok(latencies)
        })
    });
    let tasks: Vec<_> = tasks.collect();
    let mut latencies = Vec::new();
    for task in tasks {
        latencies.extend(task.await??);
    }
    let millis = u64::try_from(began.elapsed().as_millis())?;
    Ok(Measured {
        per_second: u64::try_from(latencies.len())? * 1_000 / millis,
        median: median(latencies.into_iter()),
    })
}

/// The store as a scenario asks it.
#[derive(Debug)]
struct Ours {
    store: PostgresStore,
    policy: Policy,
    space: Space,
    denied: bool,
}

impl Ours {
    fn new(pool: &PgPool, scenario: Scenario, lanes: usize) -> Result<Self> {
        let store = PostgresStore::builder(pool.clone())
            .synchronous_commit(scenario.commit)
            .lanes(lanes)
            .build()?;
        let limit = if scenario.denied { 0 } else { 1_000_000_000 };
        let quota = Quota::new(limit, Duration::from_secs(1_000))?;
        let policy = Policy::new("bench", Algorithm::TokenBucket, quota)?;
        let space = Space::new("", "bench", &policy);
        Ok(Self {
            store,
            policy,
            space,
            denied: scenario.denied,
        })
    }

    async fn hit(&self, subject: &str) -> Result<()> {
        let check = Check {
            key: Key::new(&self.space, subject.as_bytes())?,
            policy: &self.policy,
            op: Op::Hit(Cost::ONE),
        };
        let verdicts = self.store.apply(Batch::of_one(&check)).await?;
        if verdicts.is_allowed() == self.denied {
            bail!("the answer is not what the scenario is about");
        }
        Ok(())
    }
}
