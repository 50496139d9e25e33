//! `cargo xtask public-api`: a published crate names no outside type in its public API that it has not declared.
//!
//! Another crate's type in a public signature ties every user to that crate's major version. So each manifest lists
//! the crates whose types it shows, those that *define* them (`serde_core` for `serde::Serialize`):
//!
//! ```toml
//! [package.metadata.tollgate]
//! public-dependencies = ["serde_core"]
//! ```
//!
//! `std`, `core` and `alloc` need no mention. Bodies of exported macros are not looked into.

mod rustdoc;

use std::collections::BTreeSet;

use anyhow::{Context, Result, bail};
use cargo_metadata::Package;

use self::rustdoc::{Mention, Rustdoc};
use crate::step;
use crate::workspace::{Workspace, library_name};

const ALWAYS_ALLOWED: [&str; 3] = ["std", "core", "alloc"];

/// Checks every published library.
///
/// # Errors
/// If one names an outside type that it has not declared, or declares a crate that it does not name.
pub(crate) fn run(workspace: &Workspace) -> Result<()> {
    for package in workspace.published_libraries() {
        let Some(library) = library_name(package) else {
            continue;
        };
        let declared = declared(package)?;
        let mentions = document(workspace, package, library)?.mentions()?;
        let problems = problems(&mentions, &declared);
        for problem in &problems {
            println!("{problem}");
        }
        if !problems.is_empty() {
            bail!(
                "the public API of {} does not fit `package.metadata.tollgate.public-dependencies` of its manifest",
                package.name
            );
        }
        println!(
            "outside crates in the public API of {library}: {}",
            listed(&declared)
        );
    }
    Ok(())
}

/// Writes and reads rustdoc's JSON of a library.
///
/// The JSON is unstable, so the stable compiler has to be told to write it. That goes into a folder of its own, for
/// build scripts that ask about it would otherwise run again at each turn.
fn document(workspace: &Workspace, package: &Package, library: &str) -> Result<Rustdoc> {
    let folder = workspace.target_folder().join("public-api");
    step::run(
        &format!("public API of {}", package.name),
        step::cargo()
            .args(["rustdoc", "--package", package.name.as_str()])
            .args(["--lib", "--all-features", "--target-dir"])
            .arg(&folder)
            .args(["--", "-Z", "unstable-options", "--output-format", "json"])
            .env("RUSTC_BOOTSTRAP", "1"),
    )?;
    let path = folder.join("doc").join(format!("{library}.json"));
    let json = std::fs::read_to_string(&path)
        .with_context(|| format!("rustdoc wrote no {}", path.display()))?;
    Rustdoc::parse(&json)
}

/// The crates whose types a manifest declares to show.
fn declared(package: &Package) -> Result<BTreeSet<String>> {
    let value = &package.metadata["tollgate"]["public-dependencies"];
    if value.is_null() {
        return Ok(BTreeSet::new());
    }
    let names = value.as_array().and_then(|names| {
        let names = names
            .iter()
            .map(|name| Some(name.as_str()?.replace('-', "_")));
        names.collect::<Option<_>>()
    });
    names.with_context(|| {
        format!(
            "{}: `package.metadata.tollgate.public-dependencies` is {value}, not a list of crate names",
            package.name
        )
    })
}

fn problems(mentions: &BTreeSet<Mention>, declared: &BTreeSet<String>) -> Vec<String> {
    let mut problems = Vec::new();
    for mention in mentions {
        let outside = mention.krate.as_str();
        if !ALWAYS_ALLOWED.contains(&outside) && !declared.contains(outside) {
            let Mention { item, named, .. } = mention;
            problems.push(format!(
                "{item} names {named}, and `{outside}` is not declared"
            ));
        }
    }
    for name in declared {
        if !mentions.iter().any(|mention| mention.krate == *name) {
            problems.push(format!("`{name}` is declared, and no public item names it"));
        }
    }
    problems
}

fn listed(names: &BTreeSet<String>) -> String {
    if names.is_empty() {
        return "none".to_owned();
    }
    names
        .iter()
        .map(String::as_str)
        .collect::<Vec<_>>()
        .join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mention(item: &str, named: &str) -> Mention {
        Mention {
            item: item.to_owned(),
            named: named.to_owned(),
            krate: named.split("::").next().unwrap().to_owned(),
        }
    }

    #[test]
    fn an_outside_type_is_a_problem_unless_declared() {
        let mentions = BTreeSet::from([mention("mine::Quota", "serde_core::Serialize")]);
        let found = problems(&mentions, &BTreeSet::new());
        assert_eq!(
            found,
            ["mine::Quota names serde_core::Serialize, and `serde_core` is not declared"]
        );
        assert!(problems(&mentions, &BTreeSet::from(["serde_core".to_owned()])).is_empty());
    }

    #[test]
    fn the_standard_library_needs_no_declaration() {
        let named = ["std::io::Error", "core::fmt::Debug", "alloc::vec::Vec"];
        let mentions = named.map(|named| mention("mine::Quota", named)).into();
        assert!(problems(&mentions, &BTreeSet::new()).is_empty());
    }

    #[test]
    fn a_declaration_that_nothing_needs_is_a_problem() {
        let found = problems(&BTreeSet::new(), &BTreeSet::from(["tokio".to_owned()]));
        assert_eq!(found, ["`tokio` is declared, and no public item names it"]);
    }
}
