//! The conformance kit against Redis 8.10, which counts fixed windows by INCREX.

mod harness;

use std::process::ExitCode;

use tollgate_services::RedisProgram;

fn main() -> ExitCode {
    tollgate_conformance::main_with(harness::Single::new("redis-8", RedisProgram::Redis8))
}
