//! The conformance kit against Redis 6.2, the oldest that is supported.

mod harness;

use std::process::ExitCode;

use tollgate_services::RedisProgram;

fn main() -> ExitCode {
    tollgate_conformance::main_with(harness::Single::new("redis-6", RedisProgram::Redis6))
}
