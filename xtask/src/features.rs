//! `cargo xtask features`: every published crate has to build with any one of its features.

use anyhow::Result;
use cargo_metadata::Package;

use crate::step;
use crate::workspace::Workspace;

/// Lints each published crate with no feature, with each feature alone, and with all of them.
///
/// # Errors
/// If one combination does not build without a warning.
pub(crate) fn run(workspace: &Workspace) -> Result<()> {
    for package in workspace.published() {
        for flags in combinations(package) {
            let title = format!("{} {}", package.name, flags.join(" "));
            step::run(
                title.trim_end(),
                step::cargo()
                    .args(["clippy", "--package", package.name.as_str()])
                    .args(&flags)
                    .args(["--", "-D", "warnings"]),
            )?;
        }
    }
    Ok(())
}

/// The flags of each combination. A crate without features has one.
fn combinations(package: &Package) -> Vec<Vec<&str>> {
    let features: Vec<_> = package
        .features
        .keys()
        .map(String::as_str)
        .filter(|&feature| feature != "default")
        .collect();
    if features.is_empty() {
        return vec![Vec::new()];
    }
    let mut combinations = vec![vec!["--no-default-features"]];
    if features.len() > 1 {
        let alone = |feature| vec!["--no-default-features", "--features", feature];
        combinations.extend(features.into_iter().map(alone));
    }
    combinations.push(vec!["--all-features"]);
    combinations
}

#[cfg(test)]
mod tests {
    use super::*;

    fn combinations_of(name: &str) -> Vec<String> {
        let workspace = Workspace::load().unwrap();
        let members = workspace.members();
        let package = members.iter().find(|p| p.name == name).unwrap();
        combinations(package)
            .into_iter()
            .map(|flags| flags.join(" "))
            .collect()
    }

    #[test]
    fn each_feature_is_tried_alone_and_with_all_others() {
        let combinations = combinations_of("tollgate-core");
        assert_eq!(combinations.first().unwrap(), "--no-default-features");
        assert!(combinations.contains(&"--no-default-features --features serde".to_owned()));
        assert_eq!(combinations.last().unwrap(), "--all-features");
        assert!(!combinations.iter().any(|flags| flags.ends_with(" default")));
    }

    #[test]
    fn a_crate_without_features_is_built_once() {
        assert_eq!(combinations_of("xtask"), [""]);
    }
}
