//! The matrix of cases and stores, as a page of the documentation.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{Arguments, Write as _};

use super::{Outcome, Outcomes};

const INTRODUCTION: &str = "\
# Conformance

Which cases of the conformance kit each store passes. Written by `cargo xtask conformance` from the cases' own
output; a page that no longer fits them fails `cargo xtask test`.

- `yes`: the case passes.
- `left out`: the store cannot do what the case needs.
- `n/a`: there is nothing to check with this store.
- `-`: the store's test binary has no such case.
";
const ABSENT: &str = "-";

/// The names of the cases of each store.
pub(super) type Cases = BTreeMap<String, BTreeSet<String>>;

/// The outcomes of every store.
#[derive(Debug, Default)]
pub(super) struct Matrix {
    stores: BTreeMap<String, Outcomes>,
}

impl Matrix {
    pub(super) fn add(&mut self, store: &str, outcomes: Outcomes) {
        self.stores.insert(store.to_owned(), outcomes);
    }

    pub(super) fn to_markdown(&self) -> String {
        let mut page = INTRODUCTION.to_owned();
        if self.stores.is_empty() {
            page.push_str("\nNo store runs the kit.\n");
            return page;
        }
        page.push_str(&self.summary());
        for family in self.families() {
            page.push_str(&self.family(family));
        }
        page.push_str(&self.reasons());
        page
    }

    fn summary(&self) -> String {
        let mut table =
            String::from("\n| store | yes | left out | n/a |\n| --- | ---: | ---: | ---: |\n");
        for (store, outcomes) in &self.stores {
            let count = |word| {
                outcomes
                    .values()
                    .filter(|outcome| cell(Some(outcome)) == word)
                    .count()
            };
            let (yes, left_out, not_applicable) = (count("yes"), count("left out"), count("n/a"));
            line(
                &mut table,
                format_args!("| {store} | {yes} | {left_out} | {not_applicable} |"),
            );
        }
        table
    }

    fn family(&self, family: &str) -> String {
        let names: Vec<_> = self.stores.keys().map(String::as_str).collect();
        let mut table = format!("\n## {family}\n\n");
        line(&mut table, format_args!("| case | {} |", names.join(" | ")));
        line(
            &mut table,
            format_args!("| --- |{}", " :---: |".repeat(names.len())),
        );
        for case in self.cases() {
            let (its_family, name) = split(case);
            if its_family == family {
                let cells: Vec<_> = self
                    .stores
                    .values()
                    .map(|outcomes| cell(outcomes.get(case)))
                    .collect();
                line(
                    &mut table,
                    format_args!("| {name} | {} |", cells.join(" | ")),
                );
            }
        }
        table
    }

    /// A list, so that it cannot be taken for a table of cases.
    fn reasons(&self) -> String {
        let mut list = String::new();
        for (store, outcomes) in &self.stores {
            for (case, outcome) in outcomes {
                if let Outcome::LeftOut(why) | Outcome::NotApplicable(why) = outcome {
                    line(&mut list, format_args!("- {store}, {case}: {why}"));
                }
            }
        }
        if list.is_empty() {
            list
        } else {
            format!("\n## Reasons\n\n{list}")
        }
    }

    fn cases(&self) -> BTreeSet<&str> {
        self.stores
            .values()
            .flat_map(BTreeMap::keys)
            .map(String::as_str)
            .collect()
    }

    fn families(&self) -> BTreeSet<&str> {
        self.cases().into_iter().map(|case| split(case).0).collect()
    }
}

/// Reads the names of stores and cases back from a page.
pub(super) fn cases(page: &str) -> Cases {
    let mut cases = Cases::new();
    let mut family = "";
    let mut stores: Vec<&str> = Vec::new();
    for line in page.lines() {
        if let Some(title) = line.strip_prefix("## ") {
            family = title;
        }
        let Some((first, rest)) = cells(line) else {
            continue;
        };
        match first {
            "case" => stores = rest,
            // The summary comes before any family.
            _ if family.is_empty() || first.starts_with("---") => {}
            case => {
                let present = stores.iter().zip(rest).filter(|&(_, cell)| cell != ABSENT);
                for (store, _) in present {
                    let of_store = cases.entry((*store).to_owned()).or_default();
                    of_store.insert(full_name(family, case));
                }
            }
        }
    }
    cases
}

/// The first cell of a row, and the others.
fn cells(line: &str) -> Option<(&str, Vec<&str>)> {
    let row = line.strip_prefix('|')?.strip_suffix('|')?;
    let mut cells = row.split('|').map(str::trim);
    Some((cells.next()?, cells.collect()))
}

fn cell(outcome: Option<&Outcome>) -> &'static str {
    match outcome {
        Some(Outcome::Passed) => "yes",
        Some(Outcome::LeftOut(_)) => "left out",
        Some(Outcome::NotApplicable(_)) => "n/a",
        None => ABSENT,
    }
}

/// Family and case. A case outside of any family is a family of its own.
fn split(case: &str) -> (&str, &str) {
    case.split_once("::").unwrap_or((case, case))
}

fn full_name(family: &str, case: &str) -> String {
    if family == case {
        case.to_owned()
    } else {
        format!("{family}::{case}")
    }
}

fn line(page: &mut String, text: Arguments<'_>) {
    writeln!(page, "{text}").expect("a string takes whatever is written to it");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn two_stores() -> Matrix {
        let mut matrix = Matrix::default();
        let outcomes = [
            ("batch::atomic", Outcome::Passed),
            ("golden::gcra", Outcome::Passed),
            (
                "golden::window",
                Outcome::NotApplicable("no windows".to_owned()),
            ),
        ];
        matrix.add(
            "memory",
            outcomes
                .map(|(case, outcome)| (case.to_owned(), outcome))
                .into(),
        );
        let left_out = Outcome::LeftOut("one slot per call".to_owned());
        matrix.add("redis", [("batch::atomic".to_owned(), left_out)].into());
        matrix
    }

    #[test]
    fn the_page_has_a_table_for_each_family_and_a_column_for_each_store() {
        let page = two_stores().to_markdown();
        let expected = "
| store | yes | left out | n/a |
| --- | ---: | ---: | ---: |
| memory | 2 | 0 | 1 |
| redis | 0 | 1 | 0 |

## batch

| case | memory | redis |
| --- | :---: | :---: |
| atomic | yes | left out |

## golden

| case | memory | redis |
| --- | :---: | :---: |
| gcra | yes | - |
| window | n/a | - |

## Reasons

- memory, golden::window: no windows
- redis, batch::atomic: one slot per call
";
        assert!(page.ends_with(expected), "{page}");
    }

    #[test]
    fn stores_and_cases_are_read_back_from_the_page() {
        let read = cases(&two_stores().to_markdown());
        let names = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        let memory = names(&["batch::atomic", "golden::gcra", "golden::window"]);
        let redis = names(&["batch::atomic"]);
        assert_eq!(
            read,
            Cases::from([("memory".to_owned(), memory), ("redis".to_owned(), redis)])
        );
    }

    #[test]
    fn a_page_without_stores_says_so() {
        let page = Matrix::default().to_markdown();
        assert!(page.ends_with("No store runs the kit.\n"));
        assert!(cases(&page).is_empty());
    }
}
