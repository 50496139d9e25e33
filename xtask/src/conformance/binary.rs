//! Builds the conformance binaries, runs them and reads what they print.

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
    /// If a case fails, or one is left out that was not listed as such beforehand.
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
        let listed = self.list()?;
        if outcomes != listed {
            bail!(
                "{} ran other cases than it lists: {}",
                self.store,
                difference(&outcomes, &listed)
            );
        }
        Ok(outcomes)
    }

    /// The cases and what is to become of them, without running one.
    ///
    /// # Errors
    /// If the binary cannot list its cases.
    pub(super) fn list(&self) -> Result<Outcomes> {
        let list = ["--list", "--format", "terse"];
        let all = step::output(self.command().args(list))?;
        let left_out = step::output(self.command().args(list).arg("--ignored"))?;
        let mut outcomes: Outcomes = listed(&all).map(|case| (case, Outcome::Passed)).collect();
        outcomes.extend(listed(&left_out).map(|case| (case, Outcome::LeftOut)));
        Ok(outcomes)
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
    let (case, outcome) = line.strip_prefix("test ")?.rsplit_once(" ... ")?;
    let outcome = match outcome.trim() {
        "ok" => Outcome::Passed,
        "ignored" => Outcome::LeftOut,
        _ => return None,
    };
    Some((case.trim().to_owned(), outcome))
}

/// Reads `family::case: test`.
fn listed(list: &str) -> impl Iterator<Item = String> {
    list.lines()
        .filter_map(|line| line.strip_suffix(": test"))
        .map(str::to_owned)
}

fn difference(ran: &Outcomes, listed: &Outcomes) -> String {
    let only_ran = ran
        .iter()
        .filter(|(case, outcome)| listed.get(*case) != Some(outcome));
    let only_listed = listed.iter().filter(|(case, _)| !ran.contains_key(*case));
    let describe = |(case, outcome): (&String, &Outcome)| format!("{case} ({outcome:?})");
    only_ran
        .chain(only_listed)
        .map(describe)
        .collect::<Vec<_>>()
        .join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcomes(cases: &[(&str, Outcome)]) -> Outcomes {
        cases
            .iter()
            .map(|&(case, outcome)| (case.to_owned(), outcome))
            .collect()
    }

    #[test]
    fn outcomes_are_read_from_the_lines_of_a_test_binary() {
        let lines = "\nrunning 3 tests\ntest batch::all_or_nothing    ... ok\ntest clock::far_jump ... ignored\n\
                     test golden::gcra ... FAILED\n\ntest result: FAILED. 1 passed\n";
        let read: Outcomes = lines.lines().filter_map(outcome).collect();
        let expected = [
            ("batch::all_or_nothing", Outcome::Passed),
            ("clock::far_jump", Outcome::LeftOut),
        ];
        assert_eq!(read, outcomes(&expected));
    }

    #[test]
    fn cases_are_read_from_a_terse_list() {
        let list =
            "batch::all_or_nothing: test\nclock::far_jump: test\nspeed::hit: benchmark\n\n2 tests";
        let cases: Vec<_> = listed(list).collect();
        assert_eq!(cases, ["batch::all_or_nothing", "clock::far_jump"]);
    }

    #[test]
    fn a_case_left_out_at_the_last_moment_is_a_difference() {
        let ran = outcomes(&[("clock::far_jump", Outcome::LeftOut)]);
        let listed = outcomes(&[
            ("clock::far_jump", Outcome::Passed),
            ("golden::gcra", Outcome::Passed),
        ]);
        let difference = difference(&ran, &listed);
        assert_eq!(
            difference,
            "clock::far_jump (LeftOut), golden::gcra (Passed)"
        );
    }

    #[test]
    fn a_failing_binary_keeps_the_outcomes_of_the_cases_before() {
        let mut command = step::command("sh");
        command.args(["-c", "echo 'test golden::gcra ... ok'; exit 101"]);
        let (status, read) = run_visibly(&mut command).unwrap();
        assert!(!status.success());
        assert_eq!(read, outcomes(&[("golden::gcra", Outcome::Passed)]));
    }
}
