//! Words that mark unfinished work, and tests that do not run.

use super::{Source, Violation};

// In two pieces each, so that this file does not find itself.
const UNFINISHED: [&str; 5] = [
    concat!("TO", "DO"),
    concat!("FIX", "ME"),
    concat!("X", "XX"),
    concat!("todo", "!"),
    concat!("unimplemented", "!"),
];
const NOT_RUN: &str = concat!("#[", "ignore");
const FENCE: &str = concat!("``", "`");

pub(super) fn check(source: &Source) -> Vec<Violation> {
    let mut violations = Vec::new();
    for (index, line) in source.text.lines().enumerate() {
        for word in UNFINISHED {
            if contains_word(line, word) {
                let message = format!("`{word}` marks unfinished work; finish it or take it out");
                violations.push(Violation::line(source, index, message));
            }
        }
        if line.contains(NOT_RUN) {
            let message = "an ignored test does not run; make it run or take it out";
            violations.push(Violation::line(source, index, message));
        }
    }
    violations
}

/// An example that is never compiled says nothing about whether it is right.
pub(super) fn check_doctests(source: &Source) -> Vec<Violation> {
    let mut violations = Vec::new();
    for (index, line) in source.text.lines().enumerate() {
        let line = line.trim_start();
        let line = line
            .strip_prefix("///")
            .or_else(|| line.strip_prefix("//!"))
            .unwrap_or(line);
        let Some(language) = line.trim_start().strip_prefix(FENCE) else {
            continue;
        };
        if language
            .split([',', ' '])
            .any(|word| word.trim().starts_with("ignore"))
        {
            let message =
                "an ignored example is not compiled; use no_run, or text if it is no Rust";
            violations.push(Violation::line(source, index, message));
        }
    }
    violations
}

/// Whether `word` stands alone in the line, not inside of a longer name.
fn contains_word(line: &str, word: &str) -> bool {
    line.match_indices(word).any(|(start, _)| {
        let begins = !line[..start].ends_with(in_name);
        let ends = word.ends_with('!') || !line[start + word.len()..].starts_with(in_name);
        begins && ends
    })
}

fn in_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(text: &str) -> Source {
        Source {
            path: "a/src/lib.rs".to_owned(),
            text: text.to_owned(),
        }
    }

    #[test]
    fn every_mark_of_unfinished_work_is_found() {
        for word in UNFINISHED {
            let found = check(&source(&format!(
                "fn f() {{\n    {word}(\"later\") // {word}: x\n}}\n"
            )));
            assert_eq!(found.len(), 1, "{word}");
            assert_eq!(found[0].line, Some(2), "{word}");
        }
    }

    #[test]
    fn a_longer_name_that_holds_such_a_word_is_fine() {
        let text = concat!("let a_TO", "DO_list = XX", "XX;\n");
        assert!(check(&source(text)).is_empty());
    }

    #[test]
    fn a_test_that_is_switched_off_is_found() {
        assert_eq!(check(&source(&format!("{NOT_RUN}]\n"))).len(), 1);
        assert_eq!(
            check(&source(&format!("    {NOT_RUN} = \"slow\"]\n"))).len(),
            1
        );
    }

    #[test]
    fn an_example_that_is_not_compiled_is_found() {
        for fence in ["ignore", "rust,ignore", "ignore-wasm", "rust, ignore"] {
            for comment in ["/// ", "//! ", "    /// ", ""] {
                let found = check_doctests(&source(&format!("{comment}{FENCE}{fence}\n")));
                assert_eq!(found.len(), 1, "{comment}{FENCE}{fence}");
            }
        }
        assert!(check_doctests(&source(&format!("/// {FENCE}no_run\n"))).is_empty());
        assert!(check_doctests(&source("/// ignore this\n")).is_empty());
    }
}
