//! Builds the conformance binaries, runs them and reads what they print.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};

use anyhow::{Context, Result, bail};
use cargo_metadata::{Artifact, Message, TargetKind};

use super::{Outcome, Outcomes, Require, store_name};
use crate::step;
use crate::workspace::Workspace;

/// One store's conformance binary, built.
#[derive(Debug)]
pub(super) struct Binary {
    pub(super) store: String,
    package: String,
    target: String,
    executable: PathBuf,
    folder: PathBuf,
}

/// Builds every conformance binary, with the features that `cargo xtask test` builds everything with.
///
/// # Errors
/// If one does not compile.
pub(super) fn build(workspace: &Workspace) -> Result<Vec<Binary>> {
    let mut names = workspace.target_names(&TargetKind::Test);
    names.retain(|name| name.starts_with("conformance"));
    if names.is_empty() {
        return Ok(Vec::new());
    }
    let mut command = step::cargo();
    command.args(["test", "--workspace", "--all-features", "--no-run"]);
    command.arg("--message-format=json-render-diagnostics");
    command.args(names.iter().flat_map(|name| ["--test", name]));
    // The output is for this program; cargo shows its progress and its errors on the other stream.
    let output = command
        .stderr(Stdio::inherit())
        .output()
        .context("cannot start cargo")?;
    if !output.status.success() {
        bail!("the conformance binaries do not build");
    }
    let mut binaries = Vec::new();
    for message in Message::parse_stream(output.stdout.as_slice()) {
        if let Message::CompilerArtifact(artifact) =
            message.context("cannot read cargo's messages")?
        {
            binaries.extend(from_artifact(workspace, artifact));
        }
    }
    binaries.sort_by(|a, b| a.store.cmp(&b.store));
    Ok(binaries)
}

fn from_artifact(workspace: &Workspace, artifact: Artifact) -> Option<Binary> {
    let executable = artifact.executable?;
    let members = workspace.members();
    let package = members
        .iter()
        .find(|package| package.id == artifact.package_id)?;
    let target = artifact.target.name;
    Some(Binary {
        store: store_name(package, &target),
        package: package.name.to_string(),
        executable: executable.into(),
        folder: package.manifest_path.parent()?.into(),
        target,
    })
}

impl Binary {
    /// Runs every case with the output visible, and returns what became of each.
    ///
    /// # Errors
    /// If a case fails, or others ran than are listed.
    pub(super) fn run(&self, require: Require) -> Result<Outcomes> {
        let mut command = self.command();
        let mut variable = "";
        if require == Require::All {
            command.env("TOLLGATE_REQUIRE", "all");
            variable = "TOLLGATE_REQUIRE=all ";
        }
        let Self {
            package, target, ..
        } = self;
        let repeat =
            format!("{variable}cargo test --package {package} --all-features --test {target}");
        println!("\n== conformance of {}\n$ {repeat}", self.store);
        let (status, outcomes) = run_visibly(&mut command)?;
        if !status.success() {
            let store = &self.store;
            bail!("{store} does not conform ({status}); repeat it with\n\n    {repeat}\n");
        }
        let ran: BTreeSet<_> = outcomes.keys().cloned().collect();
        let listed = self.list()?;
        if ran != listed {
            let different: Vec<_> = ran.symmetric_difference(&listed).cloned().collect();
            bail!(
                "{} ran other cases than it lists: {}",
                self.store,
                different.join(", ")
            );
        }
        Ok(outcomes)
    }

    /// The names of the cases, without running one.
    ///
    /// # Errors
    /// If the binary cannot list its cases.
    pub(super) fn list(&self) -> Result<BTreeSet<String>> {
        let list = step::output(self.command().args(["--list", "--format", "terse"]))?;
        Ok(listed(&list).collect())
    }

    fn command(&self) -> Command {
        let mut command = step::command(&self.executable);
        command.current_dir(&self.folder);
        command.env_remove("TOLLGATE_REQUIRE");
        command
    }
}

/// Runs a conformance binary, passes its lines on and reads the outcomes from them.
fn run_visibly(command: &mut Command) -> Result<(ExitStatus, Outcomes)> {
    let mut child = command.stdout(Stdio::piped()).spawn()?;
    let mut outcomes = Outcomes::new();
    if let Some(stdout) = child.stdout.take() {
        for line in BufReader::new(stdout).lines() {
            let line = line?;
            println!("{line}");
            outcomes.extend(outcome(&line));
        }
    }
    Ok((child.wait()?, outcomes))
}

/// Reads `test family::case ... ok`. A failure needs no reading: the binary's exit tells of it.
fn outcome(line: &str) -> Option<(String, Outcome)> {
    let (case, outcome) = line.strip_prefix("test ")?.split_once(" ... ")?;
    let outcome = match outcome.trim() {
        "ok" => Outcome::Passed,
        outcome => not_run(outcome.strip_prefix("ignored")?.trim()),
    };
    Some((case.trim().to_owned(), outcome))
}

/// Reads the kit's `(left out: reason)` and `(does not apply: reason)`.
fn not_run(reason: &str) -> Outcome {
    let reason = reason.strip_prefix('(').unwrap_or(reason);
    let reason = reason.strip_suffix(')').unwrap_or(reason);
    if let Some(reason) = reason.strip_prefix("does not apply: ") {
        return Outcome::NotApplicable(reason.to_owned());
    }
    let reason = reason.strip_prefix("left out: ").unwrap_or(reason);
    Outcome::LeftOut(reason.to_owned())
}

/// Reads `family::case: test`.
fn listed(list: &str) -> impl Iterator<Item = String> {
    list.lines()
        .filter_map(|line| line.strip_suffix(": test"))
        .map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outcomes_are_read_from_the_lines_of_a_test_binary() {
        let lines = "\nrunning 5 tests\n\
            test batch::all_or_nothing    ... ok\n\
            test batch::any_keys ... ignored (left out: keys (of one call) share a slot ... here)\n\
            test clock::far_jump ... ignored (does not apply: no clock)\n\
            test clock::near_jump ... ignored\n\
            test golden::gcra ... FAILED\n\ntest result: FAILED. 1 passed\n";
        let read: Outcomes = lines.lines().filter_map(outcome).collect();
        let reason = "keys (of one call) share a slot ... here".to_owned();
        let expected = [
            ("batch::all_or_nothing", Outcome::Passed),
            ("batch::any_keys", Outcome::LeftOut(reason)),
            (
                "clock::far_jump",
                Outcome::NotApplicable("no clock".to_owned()),
            ),
            ("clock::near_jump", Outcome::LeftOut(String::new())),
        ];
        let expected = expected.map(|(case, outcome)| (case.to_owned(), outcome));
        assert_eq!(read, Outcomes::from(expected));
    }

    #[test]
    fn cases_are_read_from_a_terse_list() {
        let list = "batch::atomic: test\nclock::far_jump: test\nspeed::hit: benchmark\n\n2 tests";
        let cases: Vec<_> = listed(list).collect();
        assert_eq!(cases, ["batch::atomic", "clock::far_jump"]);
    }

    #[test]
    fn a_failing_binary_keeps_the_outcomes_of_the_cases_before() {
        let mut command = step::command("sh");
        command.args(["-c", "echo 'test golden::gcra ... ok'; exit 101"]);
        let (status, read) = run_visibly(&mut command).unwrap();
        assert!(!status.success());
        assert_eq!(read["golden::gcra"], Outcome::Passed);
    }
}
