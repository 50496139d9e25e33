//! The Redis store while its server is mistreated: what callers saw, and whether more was admitted than the limit.
#![expect(clippy::print_stdout, reason = "a benchmark prints measurements")]

mod load;
mod scenarios;

use anyhow::Result;

use crate::load::Outcome;

fn main() -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    println!("| fault | sent | answered | over-admitted | errors | longest stall |");
    println!("|---|---|---|---|---|---|");
    runtime.block_on(async {
        for (name, scenario) in scenarios::all() {
            print(name, &scenario().await?);
        }
        Ok(())
    })
}

fn print(name: &str, outcome: &Outcome) {
    let errors: Vec<_> = outcome
        .errors
        .iter()
        .map(|(kind, count)| format!("{count} {kind}"))
        .collect();
    println!(
        "| {name} | {} | {} | {} | {} | {:.2?} |",
        outcome.sent,
        outcome.answered,
        outcome.over_admitted,
        if errors.is_empty() {
            "none".to_owned()
        } else {
            errors.join(", ")
        },
        outcome.longest,
    );
}
