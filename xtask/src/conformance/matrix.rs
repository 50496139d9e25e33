//! The matrix of cases and stores, as a page of the documentation.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use super::{Outcome, Outcomes};

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
        let mut page = String::from(
            "# Conformance\n\n\
             Which cases of the conformance kit each store passes. Written by `cargo xtask conformance` from the\n\
             cases' own output; a page that no longer fits them fails `cargo xtask tidy`.\n\n\
             `yes`: the case passes. `left out`: the store declares that it cannot do what the case needs.\n\
             `-`: the store's test binary has no such case.\n",
        );
        if self.stores.is_empty() {
            page.push_str("\nNo store runs the kit.\n");
            return page;
        }
        page.push_str(&self.summary());
        for family in self.families() {
            page.push_str(&self.family(family));
        }
        page
    }

    fn summary(&self) -> String {
        let mut table =
            String::from("\n| store | cases passed | left out |\n| --- | ---: | ---: |\n");
        for (store, outcomes) in &self.stores {
            let passed = outcomes
                .values()
                .filter(|&&outcome| outcome == Outcome::Passed)
                .count();
            let left_out = outcomes.len() - passed;
            line(
                &mut table,
                format_args!("| {store} | {passed} | {left_out} |"),
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
        let of_family = self
            .cases()
            .into_iter()
            .filter(|case| split(case).0 == family);
        for case in of_family {
            let cells: Vec<_> = self
                .stores
                .values()
                .map(|outcomes| cell(outcomes.get(case)))
                .collect();
            line(
                &mut table,
                format_args!("| {} | {} |", split(case).1, cells.join(" | ")),
            );
        }
        table
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

fn cell(outcome: Option<&Outcome>) -> &'static str {
    match outcome {
        Some(Outcome::Passed) => "yes",
        Some(Outcome::LeftOut) => "left out",
        None => "-",
    }
}

/// Family and case. A case outside of any family is its own.
fn split(case: &str) -> (&str, &str) {
    case.split_once("::").unwrap_or((case, case))
}

fn line(page: &mut String, text: std::fmt::Arguments<'_>) {
    writeln!(page, "{text}").expect("a string takes whatever is written to it");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcomes(cases: &[(&str, Outcome)]) -> Outcomes {
        cases
            .iter()
            .map(|&(case, outcome)| (case.to_owned(), outcome))
            .collect()
    }

    #[test]
    fn the_page_has_a_table_for_each_family_and_a_column_for_each_store() {
        let mut matrix = Matrix::default();
        let all = [
            ("batch::atomic", Outcome::Passed),
            ("golden::gcra", Outcome::Passed),
        ];
        matrix.add("memory", outcomes(&all));
        matrix.add("cas", outcomes(&[("batch::atomic", Outcome::LeftOut)]));
        let page = matrix.to_markdown();
        let expected = "
| store | cases passed | left out |
| --- | ---: | ---: |
| cas | 0 | 1 |
| memory | 2 | 0 |

## batch

| case | cas | memory |
| --- | :---: | :---: |
| atomic | left out | yes |

## golden

| case | cas | memory |
| --- | :---: | :---: |
| gcra | - | yes |
";
        assert!(page.ends_with(expected), "{page}");
    }

    #[test]
    fn a_page_without_stores_says_so() {
        assert!(
            Matrix::default()
                .to_markdown()
                .ends_with("No store runs the kit.\n")
        );
    }
}
