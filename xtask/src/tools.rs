//! Installs what a chore needs and the machine lacks.

use std::process::{Command, Stdio};

use anyhow::{Result, bail};

use crate::step;

/// Makes sure that a component of the Rust toolchain answers, `subcommand` being the cargo command that needs it.
///
/// # Errors
/// If it is missing and cannot be added; the message says what to do.
pub(crate) fn ensure_component(component: &str, subcommand: &str) -> Result<()> {
    if answers(step::cargo().args([subcommand, "--version"])) {
        return Ok(());
    }
    if !step::on_path("rustup") {
        bail!(
            "`cargo {subcommand}` is missing and there is no rustup to add it with: \
             install the `{component}` that belongs to your Rust toolchain"
        );
    }
    step::run(
        &format!("install {component}"),
        step::command("rustup").args(["component", "add", component]),
    )
}

/// Makes sure that a program of crates.io is installed, in exactly `version` if one is given.
///
/// # Errors
/// If it cannot be built.
pub(crate) fn ensure_cargo_tool(name: &str, version: &str) -> Result<()> {
    if installed_version(name).as_deref() == Some(version) {
        return Ok(());
    }
    step::run(
        &format!("install {name} {version}"),
        step::cargo().args(["install", "--locked", name, "--version", version]),
    )
}

/// Makes sure that `program` is on the search path, from the Debian package of the given name where that can be installed.
///
/// # Errors
/// If it is missing and cannot be installed; the message says which command to run.
pub(crate) fn ensure_system_program(program: &str, package: &str) -> Result<()> {
    if step::on_path(program) {
        return Ok(());
    }
    install_system_package(package)
}

/// Installs a Debian package.
///
/// # Errors
/// If this user or system cannot; the message says which command to run.
pub(crate) fn install_system_package(package: &str) -> Result<()> {
    if !step::on_path("apt-get") {
        bail!("`{package}` is missing: install it with the package manager of your system");
    }
    if !is_root() {
        bail!("`{package}` is missing; install it with\n\n    sudo apt-get install {package}\n");
    }
    step::run(
        "refresh the package lists",
        step::command("apt-get").args(["update", "--quiet"]),
    )?;
    step::run(
        &format!("install {package}"),
        step::command("apt-get")
            .args(["install", "--yes", "--no-install-recommends", package])
            .env("DEBIAN_FRONTEND", "noninteractive"),
    )
}

/// Whether a command runs and succeeds. Its output is dropped.
pub(crate) fn answers(command: &mut Command) -> bool {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// The version that `cargo install` has recorded for a program.
fn installed_version(name: &str) -> Option<String> {
    let list = step::output(step::cargo().args(["install", "--list"])).ok()?;
    version_in_list(&list, name)
}

/// Finds `name v1.2.3:` among the unindented lines of `cargo install --list`.
fn version_in_list(list: &str, name: &str) -> Option<String> {
    list.lines().find_map(|line| {
        let version = line.strip_prefix(name)?.strip_prefix(" v")?;
        let end = version.find([':', ' ']).unwrap_or(version.len());
        Some(version[..end].to_owned())
    })
}

fn is_root() -> bool {
    step::output(step::command("id").arg("-u")).is_ok_and(|id| id.trim() == "0")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_installed_version_is_read_from_the_list_of_cargo() {
        let list = "cargo-deny v0.20.2:\n    cargo-deny\nother v1.0.0 (/src/other):\n    other\n";
        assert_eq!(
            version_in_list(list, "cargo-deny").as_deref(),
            Some("0.20.2")
        );
        assert_eq!(version_in_list(list, "other").as_deref(), Some("1.0.0"));
        assert_eq!(version_in_list(list, "cargo"), None);
    }

    #[test]
    fn a_command_that_fails_does_not_answer() {
        assert!(answers(step::cargo().arg("--version")));
        assert!(!answers(step::cargo().arg("no-such-subcommand")));
    }
}
