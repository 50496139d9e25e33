//! The servers that the stores' tests start by themselves.

use anyhow::Result;
use tollgate_services::{PostgresProgram, RedisProgram};

use crate::tools;

/// Makes sure that the programs of the system's Redis and PostgreSQL are there.
///
/// # Errors
/// If one is missing and cannot be installed; the message says which command to run.
pub(crate) fn ensure() -> Result<()> {
    if RedisProgram::System.find().is_err() {
        tools::install_system_package("redis-server")?;
    }
    if PostgresProgram::System.find().is_err() {
        tools::install_system_package("postgresql")?;
    }
    Ok(())
}
