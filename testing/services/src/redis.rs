//! One Redis or Valkey server.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use tempfile::TempDir;

use crate::port::free_port;
use crate::process::Process;
use crate::program::{cache, find_on_path};
use crate::stepped_clock::SteppedClock;

/// Which program serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RedisProgram {
    /// `redis-server` of the system, 7.0 on Debian 12.
    System,
    /// Redis 8.10, which has INCREX.
    Redis8,
    /// Valkey 9.1.
    Valkey9,
    /// Redis 6.2, the oldest that is supported.
    Redis6,
}

impl RedisProgram {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::System, Self::Redis8, Self::Valkey9, Self::Redis6];

    /// The name on the command line of `cargo xtask services`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::System => "redis",
            Self::Redis8 => "redis-8.10",
            Self::Valkey9 => "valkey-9.1",
            Self::Redis6 => "redis-6.2",
        }
    }

    /// Where the program lies, whether or not it is there.
    fn path(self) -> Option<PathBuf> {
        match self {
            Self::System => find_on_path("redis-server"),
            Self::Redis8 | Self::Redis6 => Some(cache().join(self.name()).join("redis-server")),
            Self::Valkey9 => Some(cache().join(self.name()).join("valkey-server")),
        }
    }

    /// The program.
    ///
    /// # Errors
    /// If it is not installed; the message says how to get it.
    pub fn find(self) -> Result<PathBuf> {
        if let Some(path) = self.path().filter(|path| path.is_file()) {
            return Ok(path);
        }
        match self {
            Self::System => bail!(
                "`redis-server` is missing; install it with `apt-get install redis-server` \
                 or the package manager of your system"
            ),
            _ => bail!(
                "{} is missing; get it with `cargo xtask services install {}`",
                self.name(),
                self.name()
            ),
        }
    }

    /// Whether the program is there.
    #[must_use]
    pub fn is_installed(self) -> bool {
        self.find().is_ok()
    }
}

/// A running server with an empty data set, on a loopback port of its own.
#[derive(Debug)]
pub struct RedisServer {
    process: Process,
    program: String,
    arguments: Vec<String>,
    port: u16,
    directory: TempDir,
}

impl RedisServer {
    /// Starts a server that keeps nothing on disk, and waits until it answers.
    ///
    /// # Errors
    /// If the program is missing, or does not answer within ten seconds.
    pub fn start(program: RedisProgram) -> Result<Self> {
        Self::start_with(program, &["--save", "", "--appendonly", "no"])
    }

    /// The same on a port of the caller's choice.
    ///
    /// # Errors
    /// As [`start`](Self::start), and if somebody else listens there.
    pub fn start_on(program: RedisProgram, port: u16) -> Result<Self> {
        let command = [program.find()?.to_string_lossy().into_owned()];
        match Self::try_start(&command, port, &["--save", ""])? {
            Some(server) => Ok(server),
            None => bail!("{command:?} ended right after its start on port {port}"),
        }
    }

    /// The same with other settings, as on the command line of `redis-server`.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub fn start_with(program: RedisProgram, settings: &[&str]) -> Result<Self> {
        let command = [program.find()?.to_string_lossy().into_owned()];
        Self::start_by(&command, settings)
    }

    /// The same by a clock that the caller steps.
    ///
    /// # Errors
    /// As [`start`](Self::start), and for a server that does not start under such a clock.
    pub fn start_under(clock: &SteppedClock, program: RedisProgram) -> Result<Self> {
        let command = clock.command(&program.find()?);
        Self::start_by(&command, &["--save", "", "--appendonly", "no"])
    }

    fn start_by(command: &[String], settings: &[&str]) -> Result<Self> {
        // Another process may have taken the port since it was found free.
        for _ in 0..5 {
            let port = free_port()?;
            if let Some(server) = Self::try_start(command, port, settings)? {
                return Ok(server);
            }
        }
        bail!("{command:?} ended right after its start, five times on different ports")
    }

    fn try_start(command: &[String], port: u16, settings: &[&str]) -> Result<Option<Self>> {
        let directory = TempDir::new()?;
        let place = directory.path().to_string_lossy().into_owned();
        let own = ["--bind", "127.0.0.1", "--daemonize", "no", "--dir", &place];
        let (program, before) = command.split_first().context("a command has a program")?;
        let mut arguments = before.to_vec();
        arguments.extend(["--port".to_owned(), port.to_string()]);
        arguments.extend(
            own.into_iter()
                .chain(settings.iter().copied())
                .map(str::to_owned),
        );
        let process = Process::start(program, &arguments)?;
        let mut server = Self {
            process,
            program: program.clone(),
            arguments,
            port,
            directory,
        };
        Ok(server.wait_until_ready()?.then_some(server))
    }

    /// Whether it answered; `false` if it ended instead.
    fn wait_until_ready(&mut self) -> Result<bool> {
        let deadline = Instant::now() + Duration::from_secs(10);
        while Instant::now() < deadline {
            if !self.process.is_running() {
                return Ok(false);
            }
            // A server that wants a password has started as well.
            if let Ok(answer) = command(self.port, &["PING"])
                && (answer.starts_with("+PONG") || answer.starts_with("-NOAUTH"))
            {
                return Ok(true);
            }
            thread::sleep(Duration::from_millis(10));
        }
        bail!(
            "`{}` did not answer on port {} within ten seconds",
            self.program,
            self.port
        )
    }

    /// The loopback port.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// The address as a driver takes it: `redis://127.0.0.1:<port>`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// The process, to be stopped and continued.
    #[must_use]
    pub const fn process(&self) -> &Process {
        &self.process
    }

    /// The server's own directory.
    #[must_use]
    pub fn directory(&self) -> &std::path::Path {
        self.directory.path()
    }

    /// Kills the server as a crash would (`SIGKILL`). [`restart`](Self::restart) brings it back.
    ///
    /// # Errors
    /// If it cannot be waited for.
    pub fn kill(&mut self) -> Result<()> {
        self.process.kill()
    }

    /// Starts it again on the same port with the same settings, and waits until it answers.
    ///
    /// # Errors
    /// If it does not.
    pub fn restart(&mut self) -> Result<()> {
        self.process.kill()?;
        self.process = Process::start(&self.program, &self.arguments)?;
        if !self.wait_until_ready()? {
            bail!(
                "`{}` ended right after its restart on port {}",
                self.program,
                self.port
            );
        }
        Ok(())
    }

    /// Sends one command and returns the raw reply, as far as it arrived at once.
    ///
    /// For settings and tricks that a test plays on the server; not a driver.
    ///
    /// # Errors
    /// If the server cannot be reached, or its reply is an error.
    pub fn command(&self, words: &[&str]) -> Result<String> {
        let reply = command(self.port, words)?;
        if reply.starts_with('-') {
            bail!("{} answered {}", words.join(" "), reply.trim_end());
        }
        Ok(reply)
    }
}

/// Sends one command to the server on `port`.
pub(crate) fn command(port: u16, words: &[&str]) -> Result<String> {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))
        .with_context(|| format!("nobody listens on port {port}"))?;
    stream.set_read_timeout(Some(Duration::from_secs(5)))?;
    let mut message = format!("*{}\r\n", words.len());
    for word in words {
        message.push_str(&format!("${}\r\n{word}\r\n", word.len()));
    }
    stream.write_all(message.as_bytes())?;
    let mut buffer = vec![0; 64 * 1024];
    let read = stream.read(&mut buffer)?;
    Ok(String::from_utf8_lossy(&buffer[..read]).into_owned())
}
