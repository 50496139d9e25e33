//! The conformance kit against a cluster of three nodes.

mod harness;

use std::process::ExitCode;

fn main() -> ExitCode {
    tollgate_conformance::main_with(harness::Cluster::new())
}
