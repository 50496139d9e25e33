//! `pgbouncer` in front of a PostgreSQL server.

use std::net::{Ipv4Addr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use tempfile::TempDir;

use crate::port::free_port;
use crate::postgres::{PostgresServer, as_server, is_root, run};
use crate::process::Process;
use crate::program::{find_on_path, text};

/// A pooler in transaction mode, with a few connections to its server.
#[derive(Debug)]
pub struct PgBouncer {
    process: Process,
    port: u16,
    version: (u32, u32),
    _directory: TempDir,
}

impl PgBouncer {
    /// The first version that lets prepared statements through in transaction mode.
    pub const KNOWS_PREPARED_STATEMENTS: (u32, u32) = (1, 21);

    /// The program: what `TOLLGATE_PGBOUNCER` says, else the system's.
    ///
    /// # Errors
    /// If it is not there; the message says how to get it.
    pub fn program() -> Result<PathBuf> {
        if let Some(program) = std::env::var_os("TOLLGATE_PGBOUNCER") {
            return Ok(PathBuf::from(program));
        }
        // Debian's place for it is off the search path of most users.
        let debian = Path::new("/usr/sbin/pgbouncer");
        find_on_path("pgbouncer")
            .or_else(|| debian.is_file().then(|| debian.to_path_buf()))
            .context(
                "`pgbouncer` is missing; install it with `apt-get install pgbouncer` or the package manager of your \
                 system, or name the program in TOLLGATE_PGBOUNCER",
            )
    }

    /// Starts a pooler in front of `server`, and waits until it answers.
    ///
    /// # Errors
    /// If the program is missing, or does not answer within ten seconds.
    pub fn start(server: &PostgresServer) -> Result<Self> {
        let program = Self::program()?;
        let version = version_of(&program)?;
        let directory = TempDir::new()?;
        let port = free_port()?;
        let folder = directory.path();
        std::fs::write(folder.join("users.txt"), "\"postgres\" \"\"\n")?;
        let config = folder.join("pgbouncer.ini");
        std::fs::write(&config, configuration(folder, port, server.port(), version))?;
        if is_root() {
            let user = PostgresServer::NAME;
            run(Command::new("chown").args(["-R", user]).arg(folder))?;
        }
        let mut command = as_server(&[text(&program)], "TERM");
        command.push(config.to_string_lossy().into_owned());
        let mut pooler = Self {
            process: Process::start(&command[0], &command[1..])?,
            port,
            version,
            _directory: directory,
        };
        pooler.wait_until_ready()?;
        Ok(pooler)
    }

    /// Where a client finds it.
    #[must_use]
    pub fn url(&self) -> String {
        format!(
            "postgres://{0}@127.0.0.1:{1}/{0}",
            PostgresServer::NAME,
            self.port
        )
    }

    /// Whether prepared statements get through.
    #[must_use]
    pub fn knows_prepared_statements(&self) -> bool {
        self.version >= Self::KNOWS_PREPARED_STATEMENTS
    }

    fn wait_until_ready(&mut self) -> Result<()> {
        let deadline = Instant::now() + Duration::from_secs(10);
        while Instant::now() < deadline {
            if TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).is_ok() {
                return Ok(());
            }
            if !self.process.is_running() {
                bail!("pgbouncer ended right after its start");
            }
            thread::sleep(Duration::from_millis(20));
        }
        bail!("pgbouncer on port {} did not answer in time", self.port)
    }
}

fn configuration(folder: &Path, port: u16, server: u16, version: (u32, u32)) -> String {
    let prepared = if version >= PgBouncer::KNOWS_PREPARED_STATEMENTS {
        "max_prepared_statements = 100\n"
    } else {
        ""
    };
    format!(
        "[databases]\n\
         * = host=127.0.0.1 port={server}\n\
         [pgbouncer]\n\
         listen_addr = 127.0.0.1\n\
         listen_port = {port}\n\
         unix_socket_dir =\n\
         auth_type = trust\n\
         auth_file = {0}/users.txt\n\
         logfile = {0}/pgbouncer.log\n\
         pool_mode = transaction\n\
         default_pool_size = 4\n\
         ignore_startup_parameters = extra_float_digits\n\
         {prepared}",
        folder.display()
    )
}

/// The version, from a first line like `PgBouncer 1.18.0`.
fn version_of(program: &Path) -> Result<(u32, u32)> {
    let output = Command::new(program).arg("--version").output();
    let output = output.with_context(|| format!("cannot run {}", program.display()))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let mut numbers = text
        .split_whitespace()
        .nth(1)
        .unwrap_or_default()
        .split('.')
        .map(str::parse);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(major)), Some(Ok(minor))) => Ok((major, minor)),
        _ => bail!("{} does not tell its version: {text}", program.display()),
    }
}
