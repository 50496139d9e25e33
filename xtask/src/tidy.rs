//! `cargo xtask tidy`: rules about the sources that no compiler knows.

mod length;
mod links;
mod manifests;
mod text;
mod words;

use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::workspace::{self, Workspace};
use crate::{conformance, step};

/// A file of the repository. The path is relative to the root, with `/` between its parts.
#[derive(Debug)]
struct Source {
    path: String,
    text: String,
}

/// One place where a rule is broken.
#[derive(Debug)]
struct Violation {
    path: String,
    /// Counted from 1; `None` if the file as a whole is meant.
    line: Option<usize>,
    message: String,
}

impl Violation {
    fn file(path: &str, message: impl Into<String>) -> Self {
        Self {
            path: path.to_owned(),
            line: None,
            message: message.into(),
        }
    }

    fn line(source: &Source, index: usize, message: impl Into<String>) -> Self {
        Self {
            path: source.path.clone(),
            line: Some(index + 1),
            message: message.into(),
        }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}: {}", self.path, self.message),
            None => write!(f, "{}: {}", self.path, self.message),
        }
    }
}

/// Checks the sources, and that the conformance matrix is not stale.
///
/// # Errors
/// If a rule is broken.
pub(crate) fn run(workspace: &Workspace) -> Result<()> {
    check_sources()?;
    conformance::check(workspace)
}

/// Checks every file that git tracks or would track.
///
/// # Errors
/// If a rule is broken; every violation is printed with its place.
pub(crate) fn check_sources() -> Result<()> {
    let paths = repository_files()?;
    let mut violations = manifests::check(workspace::root(), &paths)?;
    for path in &paths {
        let Some(source) = read(path)? else { continue };
        violations.extend(check(&source, &paths));
        if let Some(remark) = length::remark(&source).filter(|_| path.ends_with(".rs")) {
            println!("{remark}");
        }
    }
    for violation in &violations {
        println!("{violation}");
    }
    match violations.len() {
        0 => Ok(()),
        1 => bail!("1 rule is broken, see above"),
        count => bail!("{count} rules are broken, see above"),
    }
}

fn check(source: &Source, paths: &BTreeSet<String>) -> Vec<Violation> {
    let mut violations = Vec::new();
    let extension = Path::new(&source.path).extension();
    let extension = extension.and_then(|extension| extension.to_str());
    match extension {
        Some("rs") => {
            violations.extend(length::check(source));
            violations.extend(text::check(source));
            violations.extend(words::check(source));
            violations.extend(words::check_doctests(source));
        }
        Some("md") => {
            violations.extend(links::check(source, paths));
            violations.extend(words::check_doctests(source));
        }
        _ => violations.extend(words::check(source)),
    }
    violations
}

fn repository_files() -> Result<BTreeSet<String>> {
    let list = step::output(step::command("git").args([
        "ls-files",
        "-z",
        "--cached",
        "--others",
        "--exclude-standard",
    ]))?;
    // A file that is deleted and not yet staged is still listed.
    Ok(list
        .split_terminator('\0')
        .filter(|path| workspace::root().join(path).is_file())
        .map(str::to_owned)
        .collect())
}

/// Reads a text file; `None` for a file that is not text.
fn read(path: &str) -> Result<Option<Source>> {
    let bytes = std::fs::read(workspace::root().join(path))
        .with_context(|| format!("cannot read {path}"))?;
    Ok(String::from_utf8(bytes).ok().map(|text| Source {
        path: path.to_owned(),
        text,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn violations(path: &str, text: &str) -> Vec<String> {
        let source = Source {
            path: path.to_owned(),
            text: text.to_owned(),
        };
        check(&source, &BTreeSet::from([path.to_owned()]))
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    #[test]
    fn each_kind_of_file_meets_its_own_rules() {
        let unfinished = concat!("# TO", "DO\n");
        assert_eq!(violations("a/src/lib.rs", "fn f() {} \n").len(), 1);
        assert_eq!(violations("a/Cargo.toml", unfinished).len(), 1);
        assert_eq!(violations("a/README.md", "[gone](gone.md)\n").len(), 1);
    }

    #[test]
    fn prose_may_end_a_line_with_two_spaces_and_speak_of_unfinished_work() {
        assert!(violations("a/README.md", concat!("the TO", "DO list  \n")).is_empty());
    }

    #[test]
    fn a_violation_names_its_place() {
        let found = violations("a/src/lib.rs", "fn f() {}\nfn g() {}\t\n");
        assert!(found[0].starts_with("a/src/lib.rs:2: "), "{found:?}");
    }

    #[test]
    fn the_repository_lists_its_own_sources() {
        assert!(repository_files().unwrap().contains("xtask/src/tidy.rs"));
    }
}
