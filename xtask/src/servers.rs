//! The servers that the stores' tests start by themselves.

use anyhow::Result;
use tollgate_services::{PgBouncer, RedisProgram, postgres_programs};

use crate::tools;

/// Makes sure that the programs of the system's Redis, PostgreSQL and PgBouncer are there, and of a Redis that has
/// INCREX.
///
/// # Errors
/// If one is missing and cannot be installed; the message says which command to run.
pub(crate) fn ensure() -> Result<()> {
    if RedisProgram::System.find().is_err() {
        tools::install_system_package("redis-server")?;
    }
    if postgres_programs().is_err() {
        tools::install_system_package("postgresql")?;
    }
    if PgBouncer::program().is_err() {
        tools::install_system_package("pgbouncer")?;
    }
    if RedisProgram::Redis8.find().is_err() {
        tools::ensure_system_program("pip3", "python3-pip")?;
        tools::ensure_system_program("make", "make")?;
        tollgate_services::install(RedisProgram::Redis8)?;
    }
    Ok(())
}
