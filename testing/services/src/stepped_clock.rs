//! A wall clock that a test steps.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use tempfile::TempDir;

use crate::program::text;

/// The wall clock of the processes that are started under it, some seconds off the real one. Their other clocks run on.
///
/// It is `libfaketime`, preloaded. A server that brings an allocator of its own, such as Debian's `redis-server` with
/// jemalloc, does not start under it.
#[derive(Debug)]
pub struct SteppedClock {
    library: PathBuf,
    directory: TempDir,
}

impl SteppedClock {
    /// A clock that is right.
    ///
    /// # Errors
    /// If `libfaketime` is missing; the message says how to get it.
    pub fn new() -> Result<Self> {
        let library = Self::library()?;
        let directory = TempDir::new()?;
        // A server that becomes another user reads it as well.
        let readable = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(directory.path(), readable)?;
        let clock = Self { library, directory };
        clock.step_to(0)?;
        Ok(clock)
    }

    /// Where `libfaketime` lies: what `TOLLGATE_FAKETIME` says, else where packages put it.
    ///
    /// # Errors
    /// If it is not there; the message says how to get it.
    pub fn library() -> Result<PathBuf> {
        if let Some(library) = std::env::var_os("TOLLGATE_FAKETIME").map(PathBuf::from) {
            if library.is_file() {
                return Ok(library);
            }
            bail!("TOLLGATE_FAKETIME names no file: {}", library.display());
        }
        let folders = ["/usr/lib", "/usr/lib64", "/usr/local/lib"].map(PathBuf::from);
        // Debian has a folder for each kind of machine in between.
        let below = std::fs::read_dir("/usr/lib").into_iter().flatten();
        let below = below.filter_map(|entry| Some(entry.ok()?.path()));
        let mut files = folders
            .into_iter()
            .chain(below)
            .map(|folder| folder.join("faketime/libfaketime.so.1"));
        files.find(|file| file.is_file()).context(
            "`libfaketime` is missing; install it with `apt-get install libfaketime` or the package manager of your \
             system, or name its file in TOLLGATE_FAKETIME",
        )
    }

    /// Puts the clock so many seconds before or after the real one, at once and for all processes under it.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn step_to(&self, seconds: i64) -> Result<()> {
        let new = self.directory.path().join("new");
        std::fs::write(&new, format!("{seconds:+}\n"))?;
        // Nobody reads half an offset.
        std::fs::rename(&new, self.offset()).context("cannot step the clock")
    }

    /// The environment of a process under this clock.
    #[must_use]
    pub fn environment(&self) -> [(&'static str, String); 4] {
        [
            ("LD_PRELOAD", text(&self.library)),
            ("FAKETIME_TIMESTAMP_FILE", text(&self.offset())),
            ("FAKETIME_NO_CACHE", "1".to_owned()),
            ("FAKETIME_DONT_FAKE_MONOTONIC", "1".to_owned()),
        ]
    }

    /// The words that start `program` under this clock.
    pub(crate) fn command(&self, program: &Path) -> Vec<String> {
        let variables = self.environment();
        let variables = variables.map(|(name, value)| format!("{name}={value}"));
        let mut words = vec!["env".to_owned()];
        words.extend(variables);
        words.push(text(program));
        words
    }

    fn offset(&self) -> PathBuf {
        self.directory.path().join("offset")
    }
}
