//! The example's program.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::process::{Child, ChildStdout, Command};

/// Where cargo puts the examples: beside the folder of this test's own program.
///
/// `cargo test` builds them; `--test api` alone does not.
fn program() -> PathBuf {
    const HINT: &str = "build it with `cargo build -p tollgate-axum --example api`";
    let test = std::env::current_exe().unwrap();
    let profile = test.parent().unwrap().parent().unwrap();
    let program = profile.join("examples").join("api");
    let changed = |path: &Path| path.metadata().and_then(|data| data.modified());
    let built =
        changed(&program).unwrap_or_else(|_| panic!("{} is missing; {HINT}", program.display()));
    let sources = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/api");
    for source in std::fs::read_dir(sources).unwrap() {
        let source = source.unwrap().path();
        assert!(
            changed(&source).unwrap() <= built,
            "{} is out of date; {HINT}",
            program.display()
        );
    }
    program
}

fn command(arguments: &[&str], port: &str) -> Command {
    let mut command = Command::new(program());
    command
        .args(arguments)
        .env("PORT", port)
        .env("RUST_BACKTRACE", "0")
        .stdin(Stdio::null())
        .kill_on_drop(true);
    command
}

/// A running program, until it is dropped.
pub(crate) struct Api {
    child: Child,
    stdout: BufReader<ChildStdout>,
    address: SocketAddr,
}

impl Api {
    /// Starts it on a port that is free, and waits until it listens.
    pub(crate) async fn start(arguments: &[&str]) -> Self {
        let mut command = command(arguments, "0");
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        while !line.starts_with("listening on ") {
            line.clear();
            let length = stdout.read_line(&mut line).await.unwrap();
            assert!(length > 0, "it has ended before it listened");
        }
        let address = line.trim_end().strip_prefix("listening on http://");
        let address = address.unwrap().parse().unwrap();
        Self {
            child,
            stdout,
            address,
        }
    }

    /// The same on another store. A busy machine makes the store slow, which is not what is tested here.
    pub(crate) async fn start_on(store: &str) -> Self {
        Self::start(&["--store", store, "--store-timeout", "10000"]).await
    }

    pub(crate) fn port(&self) -> u16 {
        self.address.port()
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Interrupts it as ctrl-c does. Returns its exit code, and what it has printed since it listened.
    pub(crate) async fn interrupt(mut self) -> (Option<i32>, String) {
        let pid = self.child.id().unwrap().to_string();
        let kill = Command::new("kill").args(["-INT", &pid]).status().await;
        assert!(kill.unwrap().success());
        let mut printed = String::new();
        self.stdout.read_to_string(&mut printed).await.unwrap();
        (self.child.wait().await.unwrap().code(), printed)
    }
}

/// Runs a program that does not get to serve. Returns its exit code, and what it complains about.
pub(crate) async fn refused(arguments: &[&str], port: &str) -> (Option<i32>, String) {
    let output = command(arguments, port).output().await.unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    assert!(!printed.contains("listening"), "{printed}");
    let stderr = String::from_utf8(output.stderr).unwrap();
    (output.status.code(), stderr)
}

pub(crate) async fn help() -> String {
    let output = command(&["--help"], "0").output().await.unwrap();
    assert!(output.status.success());
    String::from_utf8(output.stdout).unwrap()
}
