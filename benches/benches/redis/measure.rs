//! Rounds in which every contender runs for a while.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use tollgate_services::RedisServer;

use crate::contenders::Contender;

const SLICE: Duration = Duration::from_millis(400);
const LONE_HITS: u32 = 1_500;

/// What one contender did, one number for each round.
pub(crate) struct Measured {
    pub(crate) name: &'static str,
    pub(crate) rates: Vec<f64>,
    pub(crate) server_micros: Vec<f64>,
}

/// Runs `contenders` in turn, `rounds` times and once before for nothing.
pub(crate) async fn rounds(
    rounds: usize,
    tasks: usize,
    server: &RedisServer,
    contenders: &[(&'static str, Contender)],
) -> Result<Vec<Measured>> {
    let empty = |(name, _): &(&'static str, Contender)| Measured {
        name,
        rates: Vec::new(),
        server_micros: Vec::new(),
    };
    let mut measured: Vec<Measured> = contenders.iter().map(empty).collect();
    for round in 0..=rounds {
        for ((_, contender), measured) in contenders.iter().zip(&mut measured) {
            let busy = server_cpu(server)?;
            let started = Instant::now();
            let hits = slice(tasks, contender).await?;
            let rate = hits as f64 / started.elapsed().as_secs_f64();
            let micros = (server_cpu(server)? - busy) * 1e6 / hits as f64;
            if round > 0 {
                measured.rates.push(rate);
                measured.server_micros.push(micros);
            }
        }
    }
    Ok(measured)
}

async fn slice(tasks: usize, contender: &Contender) -> Result<u64> {
    let (stop, hits) = (
        Arc::new(AtomicBool::new(false)),
        Arc::new(AtomicU64::new(0)),
    );
    let mut handles = Vec::new();
    for task in 0..tasks {
        let (stop, hits, contender) = (stop.clone(), hits.clone(), contender.clone());
        handles.push(tokio::spawn(async move {
            // Far apart, so that no two tasks walk the same keys in step.
            let mut hit = task as u64 * 7_919;
            let mut done = 0;
            while !stop.load(Ordering::Relaxed) {
                contender.hit(hit).await?;
                hit += 1;
                done += 1;
            }
            hits.fetch_add(done, Ordering::Relaxed);
            anyhow::Ok(())
        }));
    }
    tokio::time::sleep(SLICE).await;
    stop.store(true, Ordering::Relaxed);
    for handle in handles {
        handle.await??;
    }
    Ok(hits.load(Ordering::Relaxed))
}

/// The mean latency of a single caller, in microseconds, one number for each round.
pub(crate) async fn alone(
    rounds: usize,
    contenders: &[(&'static str, Contender)],
) -> Result<Vec<(&'static str, Vec<f64>)>> {
    let mut measured: Vec<_> = contenders
        .iter()
        .map(|(name, _)| (*name, Vec::new()))
        .collect();
    for round in 0..=rounds {
        for ((_, contender), (_, micros)) in contenders.iter().zip(&mut measured) {
            let mut each = Vec::new();
            for hit in 0..LONE_HITS {
                let started = Instant::now();
                contender.hit(u64::from(hit)).await?;
                each.push(started.elapsed().as_secs_f64() * 1e6);
            }
            if round > 0 {
                micros.push(median(&each));
            }
        }
    }
    Ok(measured)
}

/// Seconds of processor time that the server has used.
fn server_cpu(server: &RedisServer) -> Result<f64> {
    let info = server.command(&["INFO", "cpu"])?;
    let field = |name: &str| {
        let value = info.lines().find_map(|line| line.strip_prefix(name));
        value.and_then(|value| value.trim().parse::<f64>().ok())
    };
    let user = field("used_cpu_user:").context("INFO cpu has no used_cpu_user")?;
    let system = field("used_cpu_sys:").context("INFO cpu has no used_cpu_sys")?;
    Ok(user + system)
}

/// The median.
pub(crate) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
}
