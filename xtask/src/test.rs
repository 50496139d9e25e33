//! `cargo xtask test`: everything to run before pushing.

use anyhow::Result;
use cargo_metadata::TargetKind;

use crate::conformance::{self, Require};
use crate::workspace::Workspace;
use crate::{servers, step, tidy, tools};

const EVERYTHING: [&str; 2] = ["--workspace", "--all-features"];

/// Runs each step and stops at the first that fails.
///
/// # Errors
/// If a step fails; the message holds the command that repeats it.
pub(crate) fn run(workspace: &Workspace, require: Require) -> Result<()> {
    tools::ensure_component("rustfmt", "fmt")?;
    tools::ensure_component("clippy", "clippy")?;
    servers::ensure()?;
    step::run(
        "format",
        step::cargo().args(["fmt", "--all", "--", "--check"]),
    )?;
    step::check("sources", "cargo xtask tidy", tidy::check_sources)?;
    step::run(
        "lints",
        step::cargo().arg("clippy").args(EVERYTHING).args([
            "--all-targets",
            "--",
            "-D",
            "warnings",
        ]),
    )?;
    // Tests start them, and naming targets leaves them unbuilt.
    step::run(
        "examples",
        step::cargo()
            .arg("build")
            .args(EVERYTHING)
            .arg("--examples"),
    )?;
    tests(workspace)?;
    step::run(
        "examples in the documentation",
        step::cargo().arg("test").args(EVERYTHING).arg("--doc"),
    )?;
    step::run(
        "documentation",
        step::cargo()
            .arg("doc")
            .args(EVERYTHING)
            .arg("--no-deps")
            .env("RUSTDOCFLAGS", "-D warnings"),
    )?;
    conformance::run_and_check(workspace, require)
}

/// Unit and integration tests, with nextest where it is installed.
///
/// The conformance binaries are left to their own step: a store may start a server for them, which nextest would do
/// once per case.
fn tests(workspace: &Workspace) -> Result<()> {
    let mut command = step::cargo();
    if tools::answers(step::cargo().args(["nextest", "--version"])) {
        command.args(["nextest", "run"]);
    } else {
        command.arg("test");
    }
    // One failure must not hide the others.
    command.arg("--no-fail-fast");
    command.args(EVERYTHING).args(["--lib", "--bins"]);
    for name in workspace.target_names(&TargetKind::Test) {
        if !name.starts_with("conformance") {
            command.args(["--test", name]);
        }
    }
    step::run("tests", &mut command)
}
