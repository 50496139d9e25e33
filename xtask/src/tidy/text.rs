//! Whitespace that nobody sees, in places where rustfmt does not look (strings, macros, long comments).

use super::{Source, Violation};

pub(super) fn check(source: &Source) -> Vec<Violation> {
    let mut violations = Vec::new();
    for (index, line) in source.text.split('\n').enumerate() {
        if line.contains('\t') {
            violations.push(Violation::line(
                source,
                index,
                "a tab; write spaces, or \\t in a string",
            ));
        }
        if line.ends_with(char::is_whitespace) {
            violations.push(Violation::line(source, index, "whitespace ends the line"));
        }
    }
    violations
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(text: &str) -> Vec<String> {
        let source = Source {
            path: "a/src/lib.rs".to_owned(),
            text: text.to_owned(),
        };
        check(&source).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn trailing_whitespace_is_found_on_its_line() {
        assert_eq!(
            messages("fn f() {}\nfn g() {} \n"),
            ["a/src/lib.rs:2: whitespace ends the line"]
        );
    }

    #[test]
    fn a_carriage_return_is_trailing_whitespace() {
        assert_eq!(messages("fn f() {}\r\n").len(), 1);
    }

    #[test]
    fn a_tab_is_found_and_its_escape_is_not() {
        assert_eq!(messages("\tfn f() {}\n").len(), 1);
        assert!(messages("const TAB: &str = \"\\t\";\n").is_empty());
    }
}
