//! Links between the files of the repository lead somewhere.

use std::collections::BTreeSet;

use pulldown_cmark::{Event, Options, Parser, Tag};

use super::{Source, Violation};

/// Checks the links and images of a Markdown file against the files of the repository.
pub(super) fn check(source: &Source, paths: &BTreeSet<String>) -> Vec<Violation> {
    let parser = Parser::new_ext(
        &source.text,
        Options::ENABLE_TABLES | Options::ENABLE_FOOTNOTES,
    );
    let mut violations = Vec::new();
    for (event, range) in parser.into_offset_iter() {
        let Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) = event else {
            continue;
        };
        if !is_local(&dest_url) || resolves(&source.path, &dest_url, paths) {
            continue;
        }
        let index = source.text[..range.start].matches('\n').count();
        let message = format!("the link to `{dest_url}` leads to no file of the repository");
        violations.push(Violation::line(source, index, message));
    }
    violations
}

/// Whether a target names a file, as opposed to an address or a place in the same document.
fn is_local(target: &str) -> bool {
    let scheme = target.split_once(':').map(|(scheme, _)| scheme);
    let is_address = scheme.is_some_and(|scheme| scheme.chars().all(|c| c.is_ascii_alphanumeric()));
    !is_address && !target.starts_with('#')
}

fn resolves(from: &str, target: &str, paths: &BTreeSet<String>) -> bool {
    let target = target.split('#').next().unwrap_or_default();
    let Some(path) = join(from, target) else {
        return false;
    };
    let folder = format!("{path}/");
    paths.contains(&path) || path.is_empty() || paths.iter().any(|file| file.starts_with(&folder))
}

/// Follows a target from the folder of `from`; `None` if it leaves the repository.
fn join(from: &str, target: &str) -> Option<String> {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    if target.starts_with('/') {
        parts.clear();
    }
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn broken(path: &str, text: &str) -> Vec<String> {
        let paths = [
            "README.md",
            "docs/guide.md",
            "crates/tollgate-core/README.md",
        ];
        let source = Source {
            path: path.to_owned(),
            text: text.to_owned(),
        };
        check(&source, &paths.map(str::to_owned).into())
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    #[test]
    fn a_link_to_a_missing_file_is_found_on_its_line() {
        let found = broken("README.md", "# Title\n\nSee [the guide](docs/gone.md).\n");
        assert_eq!(
            found,
            ["README.md:3: the link to `docs/gone.md` leads to no file of the repository"]
        );
    }

    #[test]
    fn images_and_reference_links_are_checked_too() {
        assert_eq!(broken("README.md", "![plot](plot.svg)\n").len(), 1);
        assert_eq!(
            broken("README.md", "See [it][1].\n\n[1]: gone.md\n").len(),
            1
        );
    }

    #[test]
    fn files_folders_and_parents_resolve() {
        let text = "[a](../../docs/guide.md#quotas) [b](../../docs/) [c](./README.md) [d](../..)\n";
        assert!(broken("crates/tollgate-core/README.md", text).is_empty());
    }

    #[test]
    fn a_link_out_of_the_repository_is_found() {
        assert_eq!(broken("README.md", "[a](../README.md)\n").len(), 1);
    }

    #[test]
    fn addresses_anchors_and_code_are_left_alone() {
        let text =
            "[a](https://example.com) [b](#usage) [c](mailto:a@example.com) `[d](gone.md)`\n";
        assert!(broken("README.md", text).is_empty());
    }
}
