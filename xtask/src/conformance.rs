//! `cargo xtask conformance`: runs the kit against every store and writes the matrix of its cases.
//!
//! A test target whose name begins with `conformance` is a store's conformance binary.

mod binary;
mod matrix;

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail};
use cargo_metadata::Package;

use self::binary::Binary;
use self::matrix::Matrix;
use crate::step;
use crate::workspace::{self, Workspace};

/// Where the matrix lives, relative to the root.
const MATRIX: &str = "docs/reference/conformance.md";
const WRITE_IT: &str = "write it anew with `cargo xtask conformance`";

/// Whether a case that a store's capabilities rule out is left out or fails.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Require {
    /// A case that needs what the store cannot do is left out, and the matrix says so.
    #[default]
    Capable,
    /// Such a case fails.
    All,
}

/// Runs the stores called `backends` (all if empty); if all of them ran, writes the matrix.
///
/// # Errors
/// If a store is unknown, a binary cannot be built, or a case fails.
pub(crate) fn run(workspace: &Workspace, backends: &[String], require: Require) -> Result<()> {
    let binaries = binary::build(workspace)?;
    let chosen = choose(&binaries, backends)?;
    let mut matrix = Matrix::default();
    for binary in &chosen {
        matrix.add(&binary.store, binary.run(require)?);
    }
    if chosen.len() < binaries.len() {
        println!("\n{MATRIX} is left as it is: not every store ran");
        return Ok(());
    }
    let path = workspace::root().join(MATRIX);
    std::fs::write(path, matrix.to_markdown()).with_context(|| format!("cannot write {MATRIX}"))?;
    println!("\nwrote {MATRIX}");
    Ok(())
}

/// Runs every store and compares the outcomes with the written matrix.
///
/// # Errors
/// If a case fails or the matrix is stale.
pub(crate) fn run_and_check(workspace: &Workspace, require: Require) -> Result<()> {
    let mut matrix = Matrix::default();
    for binary in binary::build(workspace)? {
        matrix.add(&binary.store, binary.run(require)?);
    }
    step::check("conformance matrix", "cargo xtask conformance", || {
        stale_unless(written()? == matrix.to_markdown())
    })
}

/// Compares the stores and cases of the written matrix with those that the binaries list, without running one.
///
/// # Errors
/// If the matrix is stale.
pub(crate) fn check(workspace: &Workspace) -> Result<()> {
    let mut listed = matrix::Cases::new();
    for binary in binary::build(workspace)? {
        listed.insert(binary.store.clone(), binary.list()?);
    }
    stale_unless(matrix::cases(&written()?) == listed)
}

fn written() -> Result<String> {
    std::fs::read_to_string(workspace::root().join(MATRIX))
        .with_context(|| format!("cannot read {MATRIX}; {WRITE_IT}"))
}

fn stale_unless(fits: bool) -> Result<()> {
    if !fits {
        bail!("{MATRIX} is stale; {WRITE_IT}");
    }
    Ok(())
}

fn choose<'a>(binaries: &'a [Binary], backends: &[String]) -> Result<Vec<&'a Binary>> {
    for backend in backends {
        if !binaries.iter().any(|binary| binary.store == *backend) {
            let known: Vec<_> = binaries
                .iter()
                .map(|binary| binary.store.as_str())
                .collect();
            bail!(
                "no store is called `{backend}`; there are: {}",
                known.join(", ")
            );
        }
    }
    let chosen = |binary: &&Binary| backends.is_empty() || backends.contains(&binary.store);
    Ok(binaries.iter().filter(chosen).collect())
}

/// What became of each case of one store.
type Outcomes = BTreeMap<String, Outcome>;

/// What became of one case of one store, with the store's reason if it did not run.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Outcome {
    Passed,
    /// The store cannot do what the case needs.
    LeftOut(String),
    /// There is nothing to check with this store.
    NotApplicable(String),
}

/// The name of the store that a conformance target stands for: `memory` for `tollgate-memory/tests/conformance.rs`,
/// `redis-cluster` for `tollgate-redis/tests/conformance_cluster.rs`, and the bare suffix for the kit's own stores.
fn store_name(package: &Package, target: &str) -> String {
    const KIT: &str = "tollgate-conformance";
    let crate_name = package.name.as_str();
    let suffix = target
        .trim_start_matches("conformance")
        .trim_start_matches('_');
    let suffix = suffix.replace('_', "-");
    let store = crate_name.strip_prefix("tollgate-").unwrap_or(crate_name);
    match (suffix.is_empty(), crate_name == KIT) {
        (true, _) => store.to_owned(),
        (false, true) => suffix,
        (false, false) => format!("{store}-{suffix}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(package: &str, target: &str) -> String {
        let workspace = Workspace::load().unwrap();
        let members = workspace.members();
        let package = members.iter().find(|p| p.name == package).unwrap();
        store_name(package, target)
    }

    #[test]
    fn a_store_is_named_after_its_crate_and_the_rest_of_its_target() {
        assert_eq!(name("tollgate-memory", "conformance"), "memory");
        assert_eq!(
            name("tollgate-memory", "conformance_os_clock"),
            "memory-os-clock"
        );
        assert_eq!(name("tollgate-conformance", "conformance_cas"), "cas");
    }

    #[test]
    fn an_unknown_store_is_refused() {
        let error = choose(&[], &["nosuch".to_owned()]).unwrap_err();
        assert!(error.to_string().contains("`nosuch`"), "{error}");
    }
}
