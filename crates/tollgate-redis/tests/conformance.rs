//! The conformance kit against the system's Redis.

mod harness;

use std::process::ExitCode;

use tollgate_services::RedisProgram;

fn main() -> ExitCode {
    tollgate_conformance::main_with(harness::Single::new("redis", RedisProgram::System))
}
