//! The tables of `docs/quota.md` hold.

use std::fs;
use std::path::Path;

use tollgate_core::QuotaList;

/// The rows of the table under `heading`, without its head.
fn table(heading: &str) -> Vec<(String, String)> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/quota.md");
    let page = fs::read_to_string(path).expect("docs/quota.md of this repository");
    let (_, rest) = page.split_once(heading).expect(heading);
    let section = rest.split("\n## ").next().expect("the text of the section");
    let rows = section.lines().filter(|line| line.starts_with("| `"));
    rows.map(|row| {
        let cells = row.trim_matches(['|', ' ']);
        let (left, right) = cells.split_once(" | ").expect("two cells");
        (unquoted(left), unquoted(right))
    })
    .collect()
}

fn unquoted(cell: &str) -> String {
    cell.trim_matches('`').to_owned()
}

#[test]
fn every_text_said_to_be_read_is_read() {
    let rows = table("\n## What is read\n");
    assert!(rows.len() >= 10);
    for (text, canonical) in rows {
        let list: QuotaList = text.parse().expect(&text);
        assert_eq!(list.to_string(), canonical);
    }
}

#[test]
fn every_text_said_to_be_refused_is_refused_with_that_error() {
    let rows = table("\n## What is refused\n");
    assert!(rows.len() >= 10);
    for (text, message) in rows {
        let error = text.parse::<QuotaList>().expect_err(&text);
        assert_eq!(error.to_string(), message);
    }
}
