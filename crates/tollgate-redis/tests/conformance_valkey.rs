//! The conformance kit against Valkey.

mod harness;

use std::process::ExitCode;

use tollgate_services::RedisProgram;

fn main() -> ExitCode {
    tollgate_conformance::main_with(harness::Single::new("redis-valkey", RedisProgram::Valkey9))
}
