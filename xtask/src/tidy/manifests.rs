//! What every member's manifest and folder have to hold.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context, Result};
use toml::{Table, Value};

use super::Violation;

/// Files that travel with every published crate.
const FILES: [&str; 4] = ["README.md", "CHANGELOG.md", "LICENSE-APACHE", "LICENSE-MIT"];

/// Checks the manifest of every member among `paths`.
///
/// # Errors
/// If a manifest cannot be read or is no TOML.
pub(super) fn check(root: &Path, paths: &BTreeSet<String>) -> Result<Vec<Violation>> {
    let mut violations = Vec::new();
    for path in paths {
        let Some(folder) = path.strip_suffix("/Cargo.toml") else {
            continue;
        };
        let text = std::fs::read_to_string(root.join(path))
            .with_context(|| format!("cannot read {path}"))?;
        let manifest: Table = text.parse().with_context(|| format!("{path} is no TOML"))?;
        violations.extend(check_manifest(path, folder, &manifest));
        if is_published(&manifest) {
            violations.extend(missing_files(folder, paths));
        }
    }
    Ok(violations)
}

fn check_manifest(path: &str, folder: &str, manifest: &Table) -> Vec<Violation> {
    let mut violations = Vec::new();
    let mut require = |holds: bool, message: String| {
        if !holds {
            violations.push(Violation::file(path, message));
        }
    };
    let package = |key: &str| manifest.get("package").and_then(|package| package.get(key));
    let folder_name = folder.rsplit('/').next().unwrap_or(folder);
    let name = package("name").and_then(Value::as_str).unwrap_or_default();
    require(
        name == folder_name || !folder.starts_with("crates/"),
        format!("the crate `{name}` lives in a folder of another name, `{folder_name}`"),
    );
    for key in ["description", "rust-version"] {
        require(
            package(key).is_some(),
            format!("`package.{key}` is missing"),
        );
    }
    for key in ["version", "edition", "license"] {
        require(
            is_inherited(package(key)),
            format!("`package.{key}` is not inherited; write `{key}.workspace = true`"),
        );
    }
    require(
        is_inherited(manifest.get("lints")),
        "the lints are not inherited; write `[lints]` with `workspace = true`".to_owned(),
    );
    violations
}

fn missing_files(folder: &str, paths: &BTreeSet<String>) -> Vec<Violation> {
    let present = |name: &&str| paths.contains(&format!("{folder}/{name}"));
    let missing = FILES.iter().filter(|name| !present(name));
    missing
        .map(|name| Violation::file(folder, format!("`{name}` is missing")))
        .collect()
}

fn is_published(manifest: &Table) -> bool {
    let publish = manifest
        .get("package")
        .and_then(|package| package.get("publish"));
    publish.is_none_or(|publish| publish.as_bool() != Some(false))
}

fn is_inherited(value: Option<&Value>) -> bool {
    value.and_then(|value| value.get("workspace")) == Some(&Value::Boolean(true))
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = r#"
        [package]
        name = "tollgate-core"
        description = "Exact rate limiting"
        rust-version = "1.88"
        version.workspace = true
        edition.workspace = true
        license.workspace = true

        [lints]
        workspace = true
    "#;

    fn messages(folder: &str, text: &str) -> Vec<String> {
        let manifest = text.parse().unwrap();
        check_manifest("Cargo.toml", folder, &manifest)
            .into_iter()
            .map(|violation| violation.message)
            .collect()
    }

    #[test]
    fn a_complete_manifest_passes() {
        assert!(messages("crates/tollgate-core", GOOD).is_empty());
    }

    #[test]
    fn a_folder_of_another_name_is_found() {
        let found = messages("crates/core", GOOD);
        assert_eq!(found.len(), 1);
        assert!(found[0].contains("`core`"), "{found:?}");
        assert!(messages("benches", GOOD).is_empty());
    }

    #[test]
    fn each_missing_key_is_found() {
        for line in GOOD
            .lines()
            .filter(|line| line.contains(" = ") && !line.contains("name"))
        {
            let found = messages("crates/tollgate-core", &GOOD.replace(line, ""));
            assert_eq!(found.len(), 1, "without {line}: {found:?}");
        }
    }

    #[test]
    fn a_licence_of_its_own_is_found() {
        let text = GOOD.replace("license.workspace = true", "license = \"MIT\"");
        let found = messages("crates/tollgate-core", &text);
        assert!(found[0].contains("license.workspace = true"), "{found:?}");
    }

    #[test]
    fn a_published_crate_without_its_papers_is_found() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("crates")).unwrap();
        let folder = root.path().join("crates/tollgate-core");
        std::fs::create_dir(&folder).unwrap();
        std::fs::write(folder.join("Cargo.toml"), GOOD).unwrap();
        let mut paths = BTreeSet::from(["crates/tollgate-core/Cargo.toml".to_owned()]);
        assert_eq!(check(root.path(), &paths).unwrap().len(), FILES.len());

        paths.extend(FILES.map(|name| format!("crates/tollgate-core/{name}")));
        assert!(check(root.path(), &paths).unwrap().is_empty());

        paths.retain(|path| path.ends_with("Cargo.toml"));
        let private = GOOD.replace("[lints]", "publish = false\n[lints]");
        std::fs::write(folder.join("Cargo.toml"), private).unwrap();
        assert!(check(root.path(), &paths).unwrap().is_empty());
    }
}
