//! `cargo xtask bench <suite>`: time and instruction counts, peers measured in the same run.

use anyhow::{Context, Result, bail};
use cargo_metadata::{MetadataCommand, TargetKind};

use crate::workspace::{self, Workspace};
use crate::{step, tools};

const PACKAGE: &str = "tollgate-benches";

/// Runs the benchmark called `suite` and every benchmark called `<suite>_<something>`; with `arguments` for it, the first
/// alone.
///
/// The names that end in `_instructions` count instructions under valgrind; what they need is installed first.
///
/// # Errors
/// If there is no such suite, a tool is missing, or a benchmark fails.
pub(crate) fn run(workspace: &Workspace, suite: &str, arguments: &[String]) -> Result<()> {
    let all = workspace.target_names(&TargetKind::Bench);
    // Benchmarks of another kind take other arguments.
    let alone = !arguments.is_empty();
    let chosen = |name: &&&str| belongs(name, suite) && (!alone || **name == suite);
    let chosen: Vec<_> = all.iter().filter(chosen).collect();
    if chosen.is_empty() {
        bail!(
            "no benchmark is called `{suite}`; there are: {}",
            all.join(", ")
        );
    }
    for name in chosen {
        if name.ends_with("_instructions") {
            tools::ensure_system_program("valgrind", "valgrind")?;
            // The runner refuses a library of another version.
            tools::ensure_cargo_tool("gungraun-runner", &locked_version("gungraun")?)?;
        }
        let mut command = step::cargo();
        command.args(["bench", "--package", PACKAGE, "--bench", name]);
        if alone {
            command.arg("--").args(arguments);
        }
        step::run(&format!("benchmark {name}"), &mut command)?;
    }
    Ok(())
}

fn belongs(name: &str, suite: &str) -> bool {
    name.strip_prefix(suite)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('_'))
}

/// The version of a dependency in `Cargo.lock`.
fn locked_version(name: &str) -> Result<String> {
    let metadata = MetadataCommand::new()
        .manifest_path(workspace::root().join("Cargo.toml"))
        .exec()?;
    let package = metadata
        .packages
        .iter()
        .find(|package| package.name == name);
    let package = package.with_context(|| format!("{name} is not a dependency"))?;
    Ok(package.version.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_suite_is_its_own_name_and_what_it_prefixes() {
        assert!(belongs("memory", "memory"));
        assert!(belongs("memory_instructions", "memory"));
        assert!(!belongs("memory", "memory_instructions"));
        assert!(!belongs("memoryless", "memory"));
    }

    #[test]
    fn an_unknown_suite_is_refused() {
        let workspace = Workspace::load().unwrap();
        let error = run(&workspace, "no-such-suite", &[]).unwrap_err();
        assert!(error.to_string().contains("`no-such-suite`"), "{error}");
    }

    #[test]
    fn the_version_of_a_dependency_is_the_locked_one() {
        assert!(locked_version("anyhow").unwrap().starts_with("1."));
        assert!(locked_version("tollgate-no-such-crate").is_err());
    }
}
