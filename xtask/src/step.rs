//! One command of a larger chore: announced, timed and easy to repeat.

use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, bail};

/// A command that runs at the root of the workspace.
pub(crate) fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    command.current_dir(crate::workspace::root());
    // `cargo run` describes xtask itself in these. Build scripts that watch them would run again
    // each time xtask and a plain cargo take turns.
    for (name, _) in std::env::vars_os() {
        if describes_this_package(&name) {
            command.env_remove(name);
        }
    }
    command
}

/// The `cargo` that the caller uses, at the root of the workspace.
pub(crate) fn cargo() -> Command {
    command("cargo")
}

/// Announces `title` and the command, runs it with its output visible, and reports the time it took.
///
/// # Errors
/// If the command cannot be started or does not succeed. The message holds the command that repeats the step.
pub(crate) fn run(title: &str, command: &mut Command) -> Result<()> {
    let shown = shown(command);
    announce(title, &shown);
    let started = Instant::now();
    let status = command
        .status()
        .with_context(|| format!("{title}: cannot start `{shown}`"))?;
    if !status.success() {
        bail!("{title} failed ({status}); repeat it with\n\n    {shown}\n");
    }
    println!("== {title}: ok in {:.1?}", started.elapsed());
    Ok(())
}

/// The same for a check that is a function of xtask itself, `repeat` being the command that runs it alone.
///
/// # Errors
/// If the check fails. The message holds the command that repeats it.
pub(crate) fn check(title: &str, repeat: &str, check: impl FnOnce() -> Result<()>) -> Result<()> {
    announce(title, repeat);
    let started = Instant::now();
    if let Err(error) = check() {
        bail!("{title} failed: {error:#}; repeat it with\n\n    {repeat}\n");
    }
    println!("== {title}: ok in {:.1?}", started.elapsed());
    Ok(())
}

/// What the command prints on its standard output.
///
/// # Errors
/// If the command cannot be started, does not succeed, or prints something that is not UTF-8.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let shown = shown(command);
    let output = command
        .output()
        .with_context(|| format!("cannot start `{shown}`"))?;
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        bail!("`{shown}` failed ({}):\n{}", output.status, stderr.trim());
    }
    String::from_utf8(output.stdout)
        .with_context(|| format!("`{shown}` printed something that is not UTF-8"))
}

fn announce(title: &str, shown: &str) {
    println!("\n== {title}\n$ {shown}");
}

/// The command as a line that can be pasted into a shell at the root of the workspace.
fn shown(command: &Command) -> String {
    let variables = command.get_envs().filter_map(|(name, value)| {
        let value = quoted(&value?.to_string_lossy());
        Some(format!("{}={value}", name.to_string_lossy()))
    });
    let words = std::iter::once(command.get_program())
        .chain(command.get_args())
        .map(|word| quoted(&word.to_string_lossy()));
    variables.chain(words).collect::<Vec<_>>().join(" ")
}

fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=./:,@+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

fn describes_this_package(variable: &OsStr) -> bool {
    let name = variable.to_string_lossy();
    name.starts_with("CARGO_PKG_")
        || name.starts_with("CARGO_MANIFEST_")
        || name == "CARGO_CRATE_NAME"
        || name == "CARGO_BIN_NAME"
        || name == "CARGO_PRIMARY_PACKAGE"
}

/// Whether `program` can be found on the search path.
pub(crate) fn on_path(program: &str) -> bool {
    let Some(path) = std::env::var_os("PATH") else {
        return false;
    };
    std::env::split_paths(&path).any(|directory| is_program(&directory, program))
}

fn is_program(directory: &Path, program: &str) -> bool {
    directory
        .join(format!("{program}{}", std::env::consts::EXE_SUFFIX))
        .is_file()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_step_names_the_command_that_repeats_it() {
        let mut command = command("cargo");
        command
            .args(["no-such-subcommand", "two words"])
            .env("RUSTDOCFLAGS", "-D warnings");
        let error = run("nonsense", &mut command).unwrap_err().to_string();
        assert!(error.starts_with("nonsense failed"), "{error}");
        assert!(
            error.contains("RUSTDOCFLAGS='-D warnings' cargo no-such-subcommand 'two words'"),
            "{error}"
        );
    }

    #[test]
    fn output_of_a_failed_command_carries_what_it_complained_about() {
        let mut command = command("cargo");
        command.arg("no-such-subcommand");
        let error = output(&mut command).unwrap_err().to_string();
        assert!(error.contains("no such command"), "{error}");
    }

    #[test]
    fn quotes_inside_a_word_survive_the_shell() {
        assert_eq!(quoted("it's"), r"'it'\''s'");
        assert_eq!(quoted("--workspace"), "--workspace");
        assert_eq!(quoted(""), "''");
    }

    #[test]
    fn only_the_variables_about_xtask_itself_are_taken_away() {
        assert!(describes_this_package(OsStr::new("CARGO_PKG_NAME")));
        assert!(!describes_this_package(OsStr::new("CARGO_TARGET_DIR")));
        assert!(!describes_this_package(OsStr::new("CARGO_HOME")));
    }

    #[test]
    fn finds_cargo_and_not_a_program_that_does_not_exist() {
        assert!(on_path("cargo"));
        assert!(!on_path("tollgate-no-such-program"));
    }
}
