//! HTTP proxies in front of a service, which tell it their clients' addresses.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use tempfile::TempDir;

use crate::port::free_port;
use crate::process::Process;
use crate::program::find_on_path;
use crate::{haproxy, nginx};

/// A proxy that listens on a port of both loopback addresses.
#[derive(Debug)]
pub struct HttpProxy {
    process: Process,
    port: u16,
    _directory: TempDir,
}

/// What a proxy does with a request.
#[derive(Clone, Copy, Debug)]
pub struct Forwarding {
    /// The port on 127.0.0.1 to which requests go.
    pub upstream: u16,
    /// The loopback address that they come from, by which the proxy is known there.
    pub from: Ipv4Addr,
    /// The header to which the proxy appends its client's address.
    pub header: ForwardingHeader,
}

/// A header that tells clients' addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForwardingHeader {
    /// `X-Forwarded-For`.
    XForwardedFor,
    /// `Forwarded`, as RFC 7239 defines it.
    Forwarded,
}

impl HttpProxy {
    /// Starts `nginx`, the program that `TOLLGATE_NGINX` names or the system's, and waits until it listens.
    ///
    /// # Errors
    /// If the program is missing, or does not listen within ten seconds.
    pub fn nginx(forwarding: &Forwarding) -> Result<Self> {
        Self::start(&Self::nginx_program()?, |folder, port| {
            let config = folder.join("nginx.conf");
            std::fs::write(&config, nginx::configuration(folder, port, forwarding))?;
            let error_log = folder.join("error.log");
            Ok([text("-c"), path(&config), text("-e"), path(&error_log)].into())
        })
    }

    /// Starts `haproxy`, the program that `TOLLGATE_HAPROXY` names or the system's, and waits until it listens.
    ///
    /// # Errors
    /// If the program is missing, or does not listen within ten seconds.
    pub fn haproxy(forwarding: &Forwarding) -> Result<Self> {
        let program = Self::haproxy_program()?;
        let version = haproxy::version_of(&program)?;
        Self::start(&program, |folder, port| {
            let config = folder.join("haproxy.cfg");
            std::fs::write(&config, haproxy::configuration(port, forwarding, version))?;
            Ok([text("-db"), text("-f"), path(&config)].into())
        })
    }

    /// The program of [`nginx`](Self::nginx).
    ///
    /// # Errors
    /// If it is not there; the message says how to get it.
    pub fn nginx_program() -> Result<PathBuf> {
        program("nginx", "TOLLGATE_NGINX")
    }

    /// The program of [`haproxy`](Self::haproxy).
    ///
    /// # Errors
    /// If it is not there; the message says how to get it.
    pub fn haproxy_program() -> Result<PathBuf> {
        program("haproxy", "TOLLGATE_HAPROXY")
    }

    /// Where clients of IPv4 find it.
    #[must_use]
    pub fn v4(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.port).into()
    }

    /// Where clients of IPv6 find it.
    #[must_use]
    pub fn v6(&self) -> SocketAddr {
        (Ipv6Addr::LOCALHOST, self.port).into()
    }

    fn start(
        program: &Path,
        configure: impl FnOnce(&Path, u16) -> Result<Vec<String>>,
    ) -> Result<Self> {
        let directory = TempDir::new()?;
        let port = free_port()?;
        let arguments = configure(directory.path(), port)?;
        let mut proxy = Self {
            process: Process::start(&path(program), &arguments)?,
            port,
            _directory: directory,
        };
        proxy
            .wait_until_ready()
            .with_context(|| format!("cannot start {}", program.display()))?;
        Ok(proxy)
    }

    fn wait_until_ready(&mut self) -> Result<()> {
        let deadline = Instant::now() + Duration::from_secs(10);
        while Instant::now() < deadline {
            if TcpStream::connect(self.v4()).is_ok() && TcpStream::connect(self.v6()).is_ok() {
                return Ok(());
            }
            if !self.process.is_running() {
                bail!("it ended right after its start");
            }
            thread::sleep(Duration::from_millis(20));
        }
        bail!("nobody listened on port {} in time", self.port)
    }
}

fn program(name: &str, variable: &str) -> Result<PathBuf> {
    if let Some(program) = std::env::var_os(variable) {
        return Ok(PathBuf::from(program));
    }
    // Debian's place for it is off the search path of most users.
    let debian = Path::new("/usr/sbin").join(name);
    find_on_path(name)
        .or_else(|| debian.is_file().then_some(debian))
        .with_context(|| {
            format!(
                "`{name}` is missing; install it with `apt-get install {name}` or the package manager of your system, or \
                 name the program in {variable}"
            )
        })
}

fn path(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

fn text(text: &str) -> String {
    text.to_owned()
}
