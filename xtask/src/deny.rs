//! `cargo xtask deny`: what the dependencies are allowed to be, from `deny.toml`.

use anyhow::Result;

use crate::{step, tools};

const CARGO_DENY: &str = "0.20.2";

/// Runs cargo-deny's checks; the advisories only if asked, for they need a database from the network.
///
/// # Errors
/// If a dependency breaks a rule, or cargo-deny cannot be installed.
pub(crate) fn run(advisories: bool) -> Result<()> {
    tools::ensure_cargo_tool("cargo-deny", CARGO_DENY)?;
    let mut command = step::cargo();
    command.args(["deny", "--all-features", "check"]);
    command.args(["bans", "licenses", "sources"]);
    if advisories {
        command.arg("advisories");
    }
    step::run("dependencies", &mut command)?;
    if !advisories {
        println!(
            "security advisories need a database from the network: the job `advisories` of \
             .github/workflows/ci.yml checks them, and so does `cargo xtask deny --advisories`"
        );
    }
    Ok(())
}
