//! The Redis store beside what one would write by hand, on one server, in interleaved rounds.
//!
//! Each round runs every contender for a while; a ratio is the median, over the rounds, of the ratios within a round.
//! So whatever slows the machine down for a while slows both sides of a ratio.
#![expect(
    clippy::print_stdout,
    clippy::float_arithmetic,
    clippy::cast_precision_loss,
    reason = "a benchmark prints measurements; no decision rests on them"
)]

mod contenders;
mod measure;

use anyhow::Result;
use tollgate_services::{RedisProgram, RedisServer};

use crate::contenders::{Counters, Script, Subjects};
use crate::measure::{Measured, alone, median, rounds};

/// Tasks that hit at the same time.
const TASKS: usize = 256;
const ROUNDS: usize = 9;

fn main() -> Result<()> {
    // Cargo passes `--bench`; nothing is settable.
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    runtime.block_on(async {
        script().await?;
        counters().await
    })
}

async fn script() -> Result<()> {
    let server = RedisServer::start(RedisProgram::System)?;
    let script = Script::new(&server).await?;
    let spread = Subjects::Spread;
    println!("\n## Token bucket, {TASKS} tasks, {}\n", version(&server)?);
    let measured = rounds(
        ROUNDS,
        TASKS,
        &server,
        &[
            ("one EVALSHA per hit, spread", script.by_hand(spread)),
            ("tollgate, spread", script.tollgate(spread)),
            (
                "deadpool-redis, one EVALSHA per hit, spread",
                script.pooled(spread),
            ),
            (
                "one EVALSHA per hit, hot key",
                script.by_hand(Subjects::One),
            ),
            ("tollgate, hot key", script.tollgate(Subjects::One)),
        ],
    )
    .await?;
    print(&measured);
    bar("spread keys", &measured, 1, 0, "at least 1.5");
    bar(
        "deadpool-redis, spread keys",
        &measured,
        2,
        0,
        "shown beside",
    );
    bar("one hot key", &measured, 4, 3, "at least 5");

    let latency = alone(
        ROUNDS,
        &[
            (
                "the store's script, called bare",
                script.bare(Subjects::One),
            ),
            ("tollgate", script.tollgate(Subjects::One)),
        ],
    )
    .await?;
    println!("\n## A lone caller\n");
    for (name, micros) in &latency {
        println!("- {name}: {:.1} us", median(micros));
    }
    let ratios: Vec<f64> = latency[1]
        .1
        .iter()
        .zip(&latency[0].1)
        .map(|(ours, bare)| ours / bare)
        .collect();
    println!("- ratio {:.2} (bar: at most 1.10)", median(&ratios));
    Ok(())
}

async fn counters() -> Result<()> {
    let server = RedisServer::start(RedisProgram::Redis8)?;
    let counters = Counters::new(&server).await?;
    println!("\n## Fixed window, {TASKS} tasks, {}\n", version(&server)?);
    let measured = rounds(
        ROUNDS,
        TASKS,
        &server,
        &[
            ("bare INCR, spread", counters.bare(Subjects::Spread)),
            ("tollgate, spread", counters.tollgate(Subjects::Spread)),
            ("bare INCR, hot key", counters.bare(Subjects::One)),
            ("tollgate, hot key", counters.tollgate(Subjects::One)),
        ],
    )
    .await?;
    print(&measured);
    bar("spread keys", &measured, 1, 0, "at least 0.45");
    bar("one hot key", &measured, 3, 2, "at least 1.5");
    Ok(())
}

fn version(server: &RedisServer) -> Result<String> {
    let info = server.command(&["INFO", "server"])?;
    let line = info
        .lines()
        .find_map(|line| line.strip_prefix("redis_version:"));
    Ok(format!(
        "Redis {}",
        line.unwrap_or("of unknown version").trim()
    ))
}

fn print(measured: &[Measured]) {
    println!("| contender | hits per second | server CPU per hit |\n|---|---|---|");
    for one in measured {
        println!(
            "| {} | {:.0} | {:.1} us |",
            one.name,
            median(&one.rates),
            median(&one.server_micros)
        );
    }
    println!();
}

fn bar(what: &str, measured: &[Measured], ours: usize, theirs: usize, bar: &str) {
    let pairs = measured[ours].rates.iter().zip(&measured[theirs].rates);
    let ratios: Vec<f64> = pairs.map(|(ours, theirs)| ours / theirs).collect();
    println!("- {what}: {:.2} (bar: {bar})", median(&ratios));
}
