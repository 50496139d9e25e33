//! The workspace as cargo sees it.

use std::path::Path;

use anyhow::{Context, Result};
use cargo_metadata::{Metadata, MetadataCommand, Package, TargetKind};

use crate::step;

/// The directory of the root manifest.
pub(crate) fn root() -> &'static Path {
    const MANIFEST_DIR: &str = env!("CARGO_MANIFEST_DIR");
    Path::new(MANIFEST_DIR)
        .parent()
        .expect("xtask is a directory of the workspace")
}

/// What `cargo metadata` says of the members of the workspace.
#[derive(Debug)]
pub(crate) struct Workspace {
    metadata: Metadata,
}

impl Workspace {
    /// Asks cargo about the members, not about their dependencies.
    ///
    /// # Errors
    /// If a manifest cannot be read.
    pub(crate) fn load() -> Result<Self> {
        let metadata = MetadataCommand::new()
            .manifest_path(root().join("Cargo.toml"))
            .no_deps()
            .exec()
            .context("cannot read the manifests of the workspace")?;
        Ok(Self { metadata })
    }

    /// Every member, in the order of their names.
    pub(crate) fn members(&self) -> Vec<&Package> {
        let mut members = self.metadata.workspace_packages();
        members.sort_by(|a, b| a.name.cmp(&b.name));
        members
    }

    /// The members that users can depend on.
    pub(crate) fn published(&self) -> Vec<&Package> {
        let mut members = self.members();
        members.retain(|package| package.publish.as_ref().is_none_or(|to| !to.is_empty()));
        members
    }

    /// The published members that are libraries.
    pub(crate) fn published_libraries(&self) -> Vec<&Package> {
        let mut members = self.published();
        members.retain(|package| library_name(package).is_some());
        members
    }

    /// Where cargo puts what it builds.
    pub(crate) fn target_folder(&self) -> &Path {
        self.metadata.target_directory.as_std_path()
    }

    /// The names of all targets of one kind, each once.
    pub(crate) fn target_names(&self, kind: &TargetKind) -> Vec<&str> {
        let mut names: Vec<_> = self
            .members()
            .into_iter()
            .flat_map(|package| &package.targets)
            .filter(|target| target.kind.contains(kind))
            .map(|target| target.name.as_str())
            .collect();
        names.sort_unstable();
        names.dedup();
        names
    }
}

/// The name of a package's library, as it is written in Rust; `None` if the package has none.
pub(crate) fn library_name(package: &Package) -> Option<&str> {
    let mut targets = package.targets.iter();
    let library = targets.find(|target| target.kind.contains(&TargetKind::Lib))?;
    Some(&library.name)
}

/// The newest release tag (`v1.2.3`), if there is one.
///
/// # Errors
/// If git cannot list the tags.
pub(crate) fn newest_release_tag() -> Result<Option<String>> {
    let tags = step::output(step::command("git").args([
        "tag",
        "--list",
        "v[0-9]*",
        "--sort=-version:refname",
    ]))?;
    Ok(tags.lines().next().map(str::to_owned))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_crates_leave_out_the_chores_and_the_benchmarks() {
        let workspace = Workspace::load().unwrap();
        let published: Vec<_> = workspace
            .published()
            .iter()
            .map(|p| p.name.as_str())
            .collect();
        assert!(published.contains(&"tollgate-core"));
        assert!(published.contains(&"tollgate-cli"));
        assert!(!published.contains(&"xtask"));
        assert!(!published.contains(&"tollgate-benches"));
    }

    #[test]
    fn a_program_is_not_a_library() {
        let workspace = Workspace::load().unwrap();
        let libraries = workspace.published_libraries();
        assert!(libraries.iter().any(|p| p.name == "tollgate-core"));
        assert!(!libraries.iter().any(|p| p.name == "xtask"));
    }
}
