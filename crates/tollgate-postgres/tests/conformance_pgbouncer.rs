//! The kit against PostgreSQL behind `PgBouncer` in transaction mode.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod kit;
mod support;

fn main() -> std::process::ExitCode {
    tollgate_conformance::main_with(kit::PostgresHarness::through_a_pooler())
}
