//! The `tollgate` program.

mod replay;
mod usage;

use std::io::{self, BufWriter, Write};
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::replay::ReplayArgs;
use crate::usage::UsageError;

/// Exit status for a command line that is wrong, the same as clap's.
const WRONG_USAGE: u8 = 2;

/// Rate limits, tried out on real traffic
#[derive(Debug, Parser)]
#[command(name = "tollgate", version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Replay(Box<ReplayArgs>),
}

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return report_usage(&error),
    };
    match run(cli) {
        Ok(()) => ExitCode::SUCCESS,
        // Whoever read the output has seen enough, as `head` does.
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            // Where standard error is closed too, the exit status has to do.
            let _ = writeln!(io::stderr(), "error: {error:#}");
            if error.is::<UsageError>() {
                WRONG_USAGE.into()
            } else {
                ExitCode::FAILURE
            }
        }
    }
}

fn run(cli: Cli) -> anyhow::Result<()> {
    let mut out = BufWriter::new(io::stdout().lock());
    match cli.command {
        Command::Replay(args) => replay::run(*args, &mut out, &mut io::stderr())?,
    }
    out.flush()?;
    Ok(())
}

/// Prints help or what is wrong with the command line: status 0 for help that was asked for, else 2.
fn report_usage(error: &clap::Error) -> ExitCode {
    let _ = error.print();
    if error.use_stderr() {
        WRONG_USAGE.into()
    } else {
        ExitCode::SUCCESS
    }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let mut causes = error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<io::Error>());
    causes.any(|cause| cause.kind() == io::ErrorKind::BrokenPipe)
}
