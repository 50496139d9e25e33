//! `cargo xtask services`: the servers that tests and benchmarks run against, to list, install and try by hand.

use std::io::Read;

use anyhow::{Result, bail};
use tollgate_services::{
    PostgresServer, RedisCluster, RedisProgram, RedisSentinel, RedisServer, postgres_programs,
};

/// Prints which programs there are, and how to get those that are missing.
pub(crate) fn list() {
    for program in RedisProgram::ALL {
        line(program.name(), program.find());
    }
    line("postgres", postgres_programs());
    println!("redis-cluster and redis-sentinel are started from `redis`");
}

fn line(name: &str, found: Result<std::path::PathBuf>) {
    match found {
        Ok(path) => println!("{name}: {}", path.display()),
        Err(why) => println!("{name}: {why:#}"),
    }
}

/// Fetches or builds the program called `name`.
///
/// # Errors
/// If there is none of that name that can be got this way, or it cannot be got.
pub(crate) fn install(name: &str) -> Result<()> {
    let program = RedisProgram::ALL.into_iter().find(|one| one.name() == name);
    let Some(program) = program else {
        bail!(
            "nothing called `{name}` can be installed; there are: {}",
            RedisProgram::ALL.map(RedisProgram::name).join(", ")
        );
    };
    let path = tollgate_services::install(program)?;
    println!("{name}: {}", path.display());
    Ok(())
}

/// Starts the server called `name`, prints its address, and stops it when the standard input ends or Ctrl-C comes.
///
/// # Errors
/// If there is no such server or it does not start.
pub(crate) fn start(name: &str) -> Result<()> {
    match name {
        "postgres" => {
            let server = PostgresServer::start()?;
            serve(name, &[server.url()])
        }
        "redis-cluster" => {
            let cluster = RedisCluster::start(RedisProgram::System)?;
            serve(name, &cluster.urls())
        }
        "redis-sentinel" => {
            let group = RedisSentinel::start(RedisProgram::System)?;
            serve(name, &group.urls())
        }
        _ => start_one(name),
    }
}

fn start_one(name: &str) -> Result<()> {
    if let Some(program) = RedisProgram::ALL.into_iter().find(|one| one.name() == name) {
        let server = RedisServer::start(program)?;
        return serve(name, &[server.url()]);
    }
    bail!("no server is called `{name}`; `cargo xtask services` lists them")
}

fn serve(name: &str, addresses: &[String]) -> Result<()> {
    println!("{name} serves at {}", addresses.join(" "));
    println!("it stops with this program: press Ctrl-D or Ctrl-C");
    std::io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_name_is_refused_with_those_that_exist() {
        let error = install("redis-1.0").unwrap_err().to_string();
        assert!(error.contains("redis-8.10"), "{error}");
        assert!(start("redis-1.0").is_err());
    }
}
