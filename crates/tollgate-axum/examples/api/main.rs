//! An API with limits, ready to be asked: `cargo run -p tollgate-axum --example api`, then
//! `curl -i 'http://localhost:3000/search?q=tea'`, several times.
#![expect(clippy::print_stdout, reason = "a program says where it listens")]

mod app;
mod backend;

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use anyhow::{Context, Result};
use clap::{Parser, value_parser};
use tokio::net::TcpListener;

use crate::backend::Backend;

/// Serves an API with rate limits on 127.0.0.1.
#[derive(Debug, Parser)]
struct Args {
    /// The port to listen on; 0 takes one that is free
    #[arg(long, env = "PORT", default_value_t = 3000)]
    port: u16,
    /// Where the counters lie
    #[arg(
        long,
        value_name = "memory|redis://..|postgres://..",
        default_value = "memory"
    )]
    store: Backend,
    /// How long the store may take for an answer
    #[arg(long, value_name = "MILLISECONDS", default_value_t = 100)]
    #[arg(value_parser = value_parser!(u64).range(1..=10_000))]
    store_timeout: u64,
}

#[tokio::main]
async fn main() -> Result<()> {
    tracing_subscriber::fmt().with_ansi(false).init();
    let args = Args::parse();

    // Postgres is swept as long as the sweeper is there.
    let timeout = Duration::from_millis(args.store_timeout);
    let (store, _sweeper) = args.store.open(timeout).await?;
    let app = app::app(&store)?;

    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, args.port));
    let listener = TcpListener::bind(address)
        .await
        .with_context(|| format!("cannot listen on {address}"))?;
    println!("listening on http://{}", listener.local_addr()?);

    // Without the peers' addresses nobody could be told apart.
    let service = app.into_make_service_with_connect_info::<SocketAddr>();
    axum::serve(listener, service)
        .with_graceful_shutdown(ctrl_c())
        .await?;
    println!("stopped");
    Ok(())
}

async fn ctrl_c() {
    if let Err(error) = tokio::signal::ctrl_c().await {
        tracing::error!("ctrl-c is not heard: {error}");
        std::future::pending::<()>().await;
    }
}
