//! One PostgreSQL server.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use tempfile::TempDir;

use crate::port::free_port;
use crate::process::Process;
use crate::program::{find_on_path, text};
use crate::stepped_clock::SteppedClock;

/// The folder of `initdb` and `postgres`: what `TOLLGATE_POSTGRES` says, else the system's newest.
///
/// # Errors
/// If they are not there; the message says how to get them.
pub fn postgres_programs() -> Result<PathBuf> {
    let folder = match std::env::var_os("TOLLGATE_POSTGRES") {
        Some(folder) => PathBuf::from(folder),
        None => system_folder().context(
            "`postgres` is missing; install it with `apt-get install postgresql` or the package manager of your \
             system, or name the folder of its programs in TOLLGATE_POSTGRES",
        )?,
    };
    for program in ["initdb", "postgres"] {
        if !folder.join(program).is_file() {
            bail!("there is no `{program}` in {}", folder.display());
        }
    }
    Ok(folder)
}

/// Debian keeps the programs off the search path, by version.
fn system_folder() -> Option<PathBuf> {
    let versions = std::fs::read_dir("/usr/lib/postgresql").ok();
    let newest = versions
        .into_iter()
        .flatten()
        .filter_map(|entry| {
            let folder = entry.ok()?.path();
            let version: u32 = folder.file_name()?.to_str()?.parse().ok()?;
            Some((version, folder.join("bin")))
        })
        .filter(|(_, folder)| folder.join("postgres").is_file())
        .max();
    newest
        .map(|(_, folder)| folder)
        .or_else(|| Some(find_on_path("postgres")?.parent()?.to_path_buf()))
}

/// A running server with an empty database, on a loopback port of its own.
///
/// It trusts everybody, and does not wait for the disk unless a setting says so.
#[derive(Debug)]
pub struct PostgresServer {
    process: Process,
    command: Vec<String>,
    settings: Vec<String>,
    port: u16,
    directory: TempDir,
}

impl PostgresServer {
    /// The superuser, and the database.
    pub const NAME: &str = "postgres";
    const START_WITHIN: Duration = Duration::from_secs(60);

    /// Makes a cluster, starts a server on it, and waits until it answers.
    ///
    /// # Errors
    /// If the program is missing, or does not answer within a minute.
    pub fn start() -> Result<Self> {
        Self::start_with(&["fsync=off", "full_page_writes=off"])
    }

    /// The same with other settings, each as in `postgres -c`.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub fn start_with(settings: &[&str]) -> Result<Self> {
        Self::start_by(None, settings)
    }

    /// The same by a clock that the caller steps.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub fn start_under(clock: &SteppedClock) -> Result<Self> {
        Self::start_by(Some(clock), &["fsync=off", "full_page_writes=off"])
    }

    fn start_by(clock: Option<&SteppedClock>, settings: &[&str]) -> Result<Self> {
        let folder = postgres_programs()?;
        let mut directory = TempDir::new()?;
        if is_root() {
            // PostgreSQL refuses to serve as root.
            run(Command::new("chown").args([Self::NAME.as_ref(), directory.path().as_os_str()]))?;
        }
        let mut initdb = as_server(&[text(&folder.join("initdb"))], "TERM");
        let made = ["-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "--no-sync"];
        initdb.extend(
            ["-U", Self::NAME]
                .into_iter()
                .chain(made)
                .map(str::to_owned),
        );
        initdb.push("-D".to_owned());
        initdb.push(data_of(&directory));
        run(Command::new(&initdb[0]).args(&initdb[1..]))?;

        let program = folder.join("postgres");
        let command = clock.map_or_else(|| vec![text(&program)], |clock| clock.command(&program));
        let settings: Vec<String> = settings.iter().map(|setting| (*setting).into()).collect();
        // Another process may have taken the port since it was found free.
        for _ in 0..5 {
            let port = free_port()?;
            let process = launch(&command, &directory, port, &settings)?;
            let mut server = Self {
                process,
                command: command.clone(),
                settings: settings.clone(),
                port,
                directory,
            };
            if server.wait_until_ready("")? {
                return Ok(server);
            }
            directory = server.directory;
        }
        bail!("the server ended right after its start, five times on different ports")
    }

    /// The port on 127.0.0.1.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// Where a client finds it.
    #[must_use]
    pub fn url(&self) -> String {
        format!("postgres://{0}@127.0.0.1:{1}/{0}", Self::NAME, self.port)
    }

    /// What the server has written into its log.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn log(&self) -> Result<String> {
        let path = Path::new(&data_of(&self.directory)).join("log/server.log");
        std::fs::read_to_string(path).context("cannot read the server's log")
    }

    /// Sends a signal to the first process of the server, by its name, for example `STOP`.
    ///
    /// # Errors
    /// If it cannot be sent.
    pub fn signal(&self, name: &str) -> Result<()> {
        self.process.signal(name)
    }

    /// Stops the whole server, sessions included, as a machine that hangs would: connections stay open, nobody answers.
    ///
    /// # Errors
    /// If one of its processes cannot be signalled.
    pub fn pause(&self) -> Result<()> {
        // A stopped server starts no sessions that would be missed.
        self.process.signal("STOP")?;
        self.process.signal_children("STOP")
    }

    /// Lets a [paused](Self::pause) server go on.
    ///
    /// # Errors
    /// If one of its processes cannot be signalled.
    pub fn resume(&self) -> Result<()> {
        self.process.signal_children("CONT")?;
        self.process.signal("CONT")
    }

    /// Kills the server without a chance to tidy up, with all sessions.
    ///
    /// # Errors
    /// If it cannot be stopped or waited for.
    pub fn kill(&mut self) -> Result<()> {
        // Its children would go on answering until they notice. While it is stopped, it starts no others.
        self.process.signal("STOP")?;
        self.process.signal_children("KILL")?;
        self.process.kill()
    }

    /// Starts it again on the same port and data, and waits until it has recovered.
    ///
    /// # Errors
    /// If it does not answer within a minute.
    pub fn restart(&mut self) -> Result<()> {
        self.process.kill()?;
        let killed = status(&self.directory);
        let killed = killed.lines().next().unwrap_or_default();
        let deadline = Instant::now() + Self::START_WITHIN;
        while Instant::now() < deadline {
            self.process = launch(&self.command, &self.directory, self.port, &self.settings)?;
            // The killed server's children hold its shared memory until they have noticed.
            if self.wait_until_ready(killed)? {
                return Ok(());
            }
            thread::sleep(Duration::from_millis(200));
        }
        bail!("the server did not come back on port {}", self.port)
    }

    /// Whether it answered; `false` if it ended instead. What the process `killed` has left behind says nothing.
    fn wait_until_ready(&mut self, killed: &str) -> Result<bool> {
        let deadline = Instant::now() + Self::START_WITHIN;
        while Instant::now() < deadline {
            if !self.process.is_running() {
                return Ok(false);
            }
            let text = status(&self.directory);
            let process = text.lines().next().unwrap_or_default();
            let is_ours = text.lines().nth(3) == Some(&self.port.to_string());
            if process != killed && is_ours && text.trim_end().ends_with("ready") {
                return Ok(true);
            }
            thread::sleep(Duration::from_millis(20));
        }
        bail!("the server on port {} did not answer in time", self.port)
    }
}

/// What the server says of itself: its process first, its port in the fourth line, whether it is ready in the last
/// (`pg_ctl` waits for the same); nothing if it is not running.
fn status(directory: &TempDir) -> String {
    let path = Path::new(&data_of(directory)).join("postmaster.pid");
    std::fs::read_to_string(path).unwrap_or_default()
}

fn launch(
    command: &[String],
    directory: &TempDir,
    port: u16,
    settings: &[String],
) -> Result<Process> {
    let mut command = as_server(command, "INT");
    command.extend(["-D".to_owned(), data_of(directory)]);
    let place = directory.path().to_string_lossy().into_owned();
    let own = [
        format!("port={port}"),
        "listen_addresses=127.0.0.1".to_owned(),
        format!("unix_socket_directories={place}"),
        "logging_collector=on".to_owned(),
        "log_directory=log".to_owned(),
        "log_filename=server.log".to_owned(),
    ];
    for setting in own.iter().chain(settings) {
        command.extend(["-c".to_owned(), setting.clone()]);
    }
    Process::start(&command[0], &command[1..])
}

fn data_of(directory: &TempDir) -> String {
    directory.path().join("data").to_string_lossy().into_owned()
}

/// The command line of `command` as the user who may serve.
///
/// A change of user forgets what is to happen when the parent dies, so that is said again.
pub(crate) fn as_server(command: &[String], death_signal: &str) -> Vec<String> {
    if !is_root() {
        return command.to_vec();
    }
    let user = PostgresServer::NAME;
    let mut words = vec![
        "setpriv".to_owned(),
        format!("--reuid={user}"),
        format!("--regid={user}"),
        "--clear-groups".to_owned(),
        format!("--pdeathsig={death_signal}"),
        "--".to_owned(),
    ];
    words.extend_from_slice(command);
    words
}

pub(crate) fn is_root() -> bool {
    let output = Command::new("id").arg("-u").output();
    output.is_ok_and(|output| output.stdout.trim_ascii() == b"0")
}

pub(crate) fn run(command: &mut Command) -> Result<()> {
    let output = command
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("cannot run {command:?}"))?;
    if !output.status.success() {
        bail!(
            "{command:?} failed ({}): {}",
            output.status,
            String::from_utf8_lossy(&output.stderr)
        );
    }
    Ok(())
}
