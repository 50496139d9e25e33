//! `cargo xtask semver`: a release must not break the promise of its version number.

use anyhow::Result;

use crate::workspace::{self, Workspace};
use crate::{step, tools};

const CARGO_SEMVER_CHECKS: &str = "0.51.0";

/// Compares every published library with the newest release tag.
///
/// # Errors
/// If a version number promises more than the API keeps, or cargo-semver-checks cannot be installed.
pub(crate) fn run(workspace: &Workspace) -> Result<()> {
    let Some(tag) = workspace::newest_release_tag()? else {
        println!("\n== semver\nno release tag yet: nothing to compare with");
        return Ok(());
    };
    tools::ensure_cargo_tool("cargo-semver-checks", CARGO_SEMVER_CHECKS)?;
    for package in workspace.published_libraries() {
        let manifest = package.manifest_path.strip_prefix(workspace::root())?;
        let released = format!("{tag}:{manifest}");
        if !tools::answers(step::command("git").args(["cat-file", "-e", &released])) {
            println!("\n== semver {}: not part of {tag}", package.name);
            continue;
        }
        step::run(
            &format!("semver {} since {tag}", package.name),
            step::cargo().args([
                "semver-checks",
                "--package",
                package.name.as_str(),
                "--baseline-rev",
                &tag,
            ]),
        )?;
    }
    Ok(())
}
