//! `cargo xtask ci`: everything that has to pass before a change lands.

use anyhow::Result;

use crate::conformance::Require;
use crate::workspace::Workspace;
use crate::{deny, features, public_api, semver, test};

/// Runs each chore and stops at the first that fails.
///
/// # Errors
/// If a chore fails.
pub(crate) fn run(workspace: &Workspace) -> Result<()> {
    test::run(workspace, Require::All)?;
    features::run(workspace)?;
    public_api::run(workspace)?;
    deny::run(false)?;
    semver::run(workspace)
}
