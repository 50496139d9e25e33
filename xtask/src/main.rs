//! Tollgate's own chores: `cargo xtask <command>`.
//!
//! Each command lives in the module of its name. `cargo xtask ci` is the sum that has to pass before a change lands.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command line tool speaks to its terminal"
)]

mod bench;
mod ci;
mod conformance;
mod deny;
mod features;
mod msrv;
mod public_api;
mod semver;
mod servers;
mod services;
mod step;
mod test;
mod tidy;
mod tools;
mod workspace;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

use crate::conformance::Require;
use crate::workspace::Workspace;

/// Tollgate's own chores.
#[derive(Debug, Parser)]
#[command(bin_name = "cargo xtask", disable_help_subcommand = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Everything to run before pushing: format, tidy, lints, tests, documentation, conformance.
    Test {
        /// What happens to a conformance case that a store says it cannot pass.
        #[arg(long, value_enum, default_value_t)]
        require: Require,
    },
    /// Everything that has to pass before a change lands: test, features, public-api, deny, semver.
    Ci,
    /// Run the conformance kit against the stores and write the matrix of its cases.
    Conformance {
        /// A store to run, by its name in the matrix; may be repeated. All of them if left out.
        #[arg(long)]
        backend: Vec<String>,
        /// What happens to a case that a store says it cannot pass.
        #[arg(long, value_enum, default_value_t)]
        require: Require,
        /// Compare the cases of the matrix with those that the stores list; run and write nothing.
        #[arg(long, conflicts_with_all = ["backend", "require"])]
        check: bool,
    },
    /// Check rules about the sources that no compiler knows.
    Tidy,
    /// Lint every published crate with each feature alone, with none and with all of them.
    Features,
    /// Check that no published crate shows a type of a crate that its manifest does not declare.
    PublicApi,
    /// Check every published crate with the oldest Rust that its manifest promises.
    Msrv,
    /// Check what the dependencies are allowed to be: versions, licences, sources.
    Deny {
        /// Check the published security advisories too. Fetches their database.
        #[arg(long)]
        advisories: bool,
    },
    /// Compare the public API of every published crate with the newest release tag.
    Semver,
    /// The servers that tests and benchmarks run against: list them if nothing else is said.
    Services {
        #[command(subcommand)]
        command: Option<Services>,
    },
    /// Measure one suite of benchmarks, its peers in the same run.
    Bench {
        /// `memory` runs the benchmarks `memory`, `memory_instructions` and so on.
        suite: String,
        /// Passed on to the benchmark of exactly that name, which then runs alone.
        #[arg(last = true)]
        arguments: Vec<String>,
    },
}

#[derive(Debug, Subcommand)]
enum Services {
    /// Fetch or build a server's program.
    Install {
        /// Its name in the list.
        name: String,
    },
    /// Start a server and stop it again with this program.
    Start {
        /// Its name in the list.
        name: String,
    },
}

fn main() -> ExitCode {
    match run(Cli::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("\nerror: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> Result<()> {
    let workspace = Workspace::load()?;
    match command {
        Command::Test { require } => test::run(&workspace, require),
        Command::Ci => ci::run(&workspace),
        Command::Conformance { check: true, .. } => conformance::check(&workspace),
        Command::Conformance {
            backend, require, ..
        } => conformance::run(&workspace, &backend, require),
        Command::Tidy => tidy::run(&workspace),
        Command::Features => features::run(&workspace),
        Command::PublicApi => public_api::run(&workspace),
        Command::Msrv => msrv::run(&workspace),
        Command::Deny { advisories } => deny::run(advisories),
        Command::Semver => semver::run(&workspace),
        Command::Services { command: None } => {
            services::list();
            Ok(())
        }
        Command::Services {
            command: Some(Services::Install { name }),
        } => services::install(&name),
        Command::Services {
            command: Some(Services::Start { name }),
        } => services::start(&name),
        Command::Bench { suite, arguments } => bench::run(&workspace, &suite, &arguments),
    }
}
