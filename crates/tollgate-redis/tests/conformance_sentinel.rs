//! The conformance kit against a master that sentinels name.

mod harness;

use std::process::ExitCode;

fn main() -> ExitCode {
    tollgate_conformance::main_with(harness::Sentinel::new())
}
