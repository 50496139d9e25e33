//! What the axum layer costs a request: one server, the same handler without a limit and behind several, in interleaved
//! rounds over 32 kept connections of HTTP/1.1 on the loopback interface.
//!
//! `cargo xtask bench http [-- --requests 20000 --rounds 9]`
#![expect(clippy::print_stdout, reason = "the figures go to the terminal")]

mod load;

use std::net::SocketAddr;

use anyhow::{Result, ensure};
use axum::Router;
use axum::routing::get;
use clap::Parser;
use comfy_table::Table;
use tokio::net::TcpListener;
use tollgate_axum::{Headers, RateLimitLayer};
use tollgate_memory::{Algorithm, Limiter, MemoryStore, Policies, Policy, Quota};

use crate::load::{Measured, measure};

#[derive(Debug, Parser)]
struct Arguments {
    /// Requests of each route in each round
    #[arg(long, default_value_t = 20_000)]
    requests: usize,
    /// Rounds, of which the median is shown
    #[arg(long, default_value_t = 9)]
    rounds: usize,
    /// Given by `cargo bench`
    #[arg(long, hide = true)]
    bench: bool,
}

struct Route {
    path: &'static str,
    name: &'static str,
    status: u16,
}

/// The first is what the others are compared with, and the second the same again: it shows what is noise.
const ROUTES: [Route; 6] = [
    route("/bare", "no limit", 200),
    route("/again", "no limit, the same again", 200),
    route("/quiet", "one policy, no headers", 200),
    route("/limited", "one policy, both families of headers", 200),
    route("/two", "two policies, both families of headers", 200),
    route("/denied", "denied: 429 and a problem document", 429),
];

const fn route(path: &'static str, name: &'static str, status: u16) -> Route {
    Route { path, name, status }
}

#[tokio::main]
async fn main() -> Result<()> {
    let arguments = Arguments::parse();
    ensure!(arguments.rounds > 0, "there has to be a round");
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let service = app()?.into_make_service_with_connect_info::<SocketAddr>();
    tokio::spawn(async move { axum::serve(listener, service).await });

    let mut rounds = Vec::new();
    // The first warms up and does not count.
    for _ in 0..=arguments.rounds {
        let mut round = Vec::new();
        for route in &ROUTES {
            let requests = arguments.requests;
            round.push(measure(address, route.path, route.status, requests).await?);
        }
        rounds.push(round);
    }
    println!("{}", table(&rounds[1..]));
    Ok(())
}

fn app() -> Result<Router> {
    // So much that every request but those to be denied is admitted, and charged.
    let plenty = "1000000/second".parse::<Quota>()?;
    let limited = || RateLimitLayer::new(Limiter::new(MemoryStore::new(), plenty));
    let policy = |name| Policy::new(name, Algorithm::TokenBucket, plenty);
    let two = Policies::new([policy("burst")?, policy("sustained")?])?;
    let two = RateLimitLayer::new(Limiter::new(MemoryStore::new(), two));
    let spent = RateLimitLayer::new(Limiter::new(MemoryStore::new(), "0/day".parse::<Quota>()?));

    let work = || get(|| async { "found" });
    Ok(Router::new()
        .route("/bare", work())
        .route("/again", work())
        .route(
            "/quiet",
            work().route_layer(limited().headers(Headers::none())),
        )
        .route("/limited", work().route_layer(limited()))
        .route("/two", work().route_layer(two))
        .route("/denied", work().route_layer(spent)))
}

fn table(rounds: &[Vec<Measured>]) -> Table {
    let mut table = Table::new();
    table.set_header(["route", "requests/s", "of the first", "p99", "of the first"]);
    for (index, route) in ROUTES.iter().enumerate() {
        let of = |value: fn(&Measured) -> u64| median(rounds, |round| value(&round[index]));
        // Each round is compared with itself: what slows the machine down slows down both.
        let ratio = |value: fn(&Measured) -> u64| {
            let percent = |round: &[Measured]| value(&round[index]) * 100 / value(&round[0]).max(1);
            format!("{} %", median(rounds, percent))
        };
        table.add_row([
            route.name.to_owned(),
            of(|measured| measured.per_second).to_string(),
            ratio(|measured| measured.per_second),
            format!("{} us", of(|measured| measured.p99_micros)),
            ratio(|measured| measured.p99_micros),
        ]);
    }
    table
}

fn median(rounds: &[Vec<Measured>], value: impl Fn(&[Measured]) -> u64) -> u64 {
    let mut values: Vec<_> = rounds.iter().map(|round| value(round)).collect();
    values.sort_unstable();
    values[values.len() / 2]
}
