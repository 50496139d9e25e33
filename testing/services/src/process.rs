//! Child processes that never outlive their parent.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread;

use anyhow::{Context, Result, bail};

type Order = (Command, Sender<std::io::Result<Child>>);

/// A child process that is killed when this value is dropped, and by the kernel when this program ends in any way.
#[derive(Debug)]
pub struct Process {
    child: Child,
}

impl Process {
    /// Starts `program` with `arguments`, silent, in the foreground.
    ///
    /// The kernel sends it `SIGTERM` when this program ends (`setpriv --pdeathsig`, util-linux).
    ///
    /// # Errors
    /// If the program or `setpriv` cannot be started.
    pub fn start(program: &str, arguments: &[String]) -> Result<Self> {
        let mut command = Command::new("setpriv");
        command
            .args(["--pdeathsig=TERM", "--", program])
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let (answer, child) = channel();
        spawner()
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .send((command, answer))
            .context("the thread that starts servers is gone")?;
        let child = child
            .recv()
            .context("the thread that starts servers is gone")?
            .with_context(|| format!("cannot start `setpriv {program}`"))?;
        Ok(Self { child })
    }

    /// Sends a signal by its name, for example `STOP` or `KILL`.
    ///
    /// # Errors
    /// If `kill` cannot be run or refuses.
    pub fn signal(&self, name: &str) -> Result<()> {
        kill(name, &self.child.id().to_string())
    }

    /// Sends a signal to every process that this one has started and that still runs.
    ///
    /// # Errors
    /// If they cannot be listed, or `kill` cannot be run or refuses.
    pub fn signal_children(&self, name: &str) -> Result<()> {
        let id = self.child.id();
        let list = format!("/proc/{id}/task/{id}/children");
        let children = std::fs::read_to_string(&list).with_context(|| format!("no {list}"))?;
        for child in children.split_whitespace() {
            let gone = || !Path::new("/proc").join(child).exists();
            kill(name, child).or_else(|error| if gone() { Ok(()) } else { Err(error) })?;
        }
        Ok(())
    }

    /// Kills the process at once (`SIGKILL`) and waits until it is gone.
    ///
    /// # Errors
    /// If it cannot be waited for.
    pub fn kill(&mut self) -> Result<()> {
        // It fails only for a process that is gone already.
        let _ = self.child.kill();
        self.child.wait().context("cannot wait for a server")?;
        Ok(())
    }

    /// Whether it still runs.
    pub fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }
}

fn kill(signal: &str, process: &str) -> Result<()> {
    let signal = format!("-{signal}");
    let status = Command::new("kill")
        .args([&signal, process])
        .status()
        .context("cannot run `kill`")?;
    if !status.success() {
        bail!("`kill {signal} {process}` failed ({status})");
    }
    Ok(())
}

impl Drop for Process {
    fn drop(&mut self) {
        // Nobody is left to tell.
        let _ = self.kill();
    }
}

/// The kernel sends the parent's death signal when the *thread* that started the child ends, and test threads end with
/// their test. So one thread that lasts as long as the program starts all of them.
fn spawner() -> &'static Mutex<Sender<Order>> {
    static SPAWNER: OnceLock<Mutex<Sender<Order>>> = OnceLock::new();
    SPAWNER.get_or_init(|| {
        let (orders, inbox) = channel::<Order>();
        thread::spawn(move || {
            for (mut command, answer) in inbox {
                // Whoever asked may have given up; then the child is dropped here, and killed by nobody but the kernel.
                let _ = answer.send(command.spawn());
            }
        });
        Mutex::new(orders)
    })
}
