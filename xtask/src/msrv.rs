//! `cargo xtask msrv`: every published crate builds with the oldest Rust that its manifest promises.

use std::collections::BTreeMap;

use anyhow::{Context, Result};

use crate::step;
use crate::workspace::Workspace;

/// Checks the crates of each `rust-version` with that toolchain, which rustup installs if it is missing.
///
/// # Errors
/// If a toolchain cannot be installed, or a crate does not build with it.
pub(crate) fn run(workspace: &Workspace) -> Result<()> {
    for (version, packages) in by_rust_version(workspace)? {
        step::run(
            &format!("install Rust {version}"),
            step::command("rustup")
                .args(["toolchain", "install", &version])
                .args(["--profile", "minimal", "--no-self-update"]),
        )?;
        step::run(
            &format!("Rust {version}"),
            step::command("rustup")
                .args([
                    "run",
                    &version,
                    "cargo",
                    "check",
                    "--locked",
                    "--all-features",
                ])
                .args(packages.iter().flat_map(|package| ["--package", package])),
        )?;
    }
    Ok(())
}

fn by_rust_version(workspace: &Workspace) -> Result<BTreeMap<String, Vec<&str>>> {
    let mut versions = BTreeMap::<_, Vec<_>>::new();
    for package in workspace.published() {
        let name = package.name.as_str();
        let version = package.rust_version.as_ref();
        let version = version.with_context(|| format!("{name} has no rust-version"))?;
        let version = format!("{}.{}", version.major, version.minor);
        versions.entry(version).or_default().push(name);
    }
    Ok(versions)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_published_crate_is_checked_with_the_version_that_it_promises() {
        let workspace = Workspace::load().unwrap();
        let versions = by_rust_version(&workspace).unwrap();
        assert!(versions["1.88"].contains(&"tollgate-core"), "{versions:?}");
        let checked: usize = versions.values().map(Vec::len).sum();
        assert_eq!(checked, workspace.published().len());
    }
}
