//! Every short text over a small alphabet, judged by the parser and by a regular expression of the grammar.

use std::time::Duration;

use regex::{Captures, Regex};
use tollgate_core::{Quota, QuotaList};

/// The grammar for the tokens below, as a regular expression instead of a parser.
///
/// Two words need a space between them and a number has no leading zero. Groups: limit, a `per` that needs
/// no space behind it, count, unit, burst.
const QUOTA: &str = r"(?x-u)
    ^ \ * (0|1[01]*) \ *
    (?: / \ * | per\ + | (per) \ * )
    (?: (0|1[01]*) \ * )?
    (s|m|ms)
    (?: \ + burst \ * (0|1[01]*) )?
    \ * $";

struct Grammar {
    quota: Regex,
    grouped_digits: Regex,
}

impl Grammar {
    fn new() -> Self {
        let compile = |pattern| Regex::new(pattern).expect("a regular expression");
        Self {
            quota: compile(QUOTA),
            grouped_digits: compile("[01],[01]"),
        }
    }

    fn quota(&self, text: &str) -> Option<Quota> {
        let groups = self.quota.captures(text)?;
        // Directly behind a `per` only a number may follow: "pers" is one word.
        if groups.get(2).is_some() && groups.get(3).is_none() {
            return None;
        }
        let millis = match &groups[4] {
            "s" => 1_000,
            "m" => 60_000,
            _ => 1,
        };
        let count = number(&groups, 3).unwrap_or(1);
        let quota = Quota::new(number(&groups, 1)?, Duration::from_millis(count * millis)).ok()?;
        match number(&groups, 5) {
            Some(burst) => quota.with_burst(burst).ok(),
            None => Some(quota),
        }
    }

    fn list(&self, text: &str) -> Option<QuotaList> {
        if self.grouped_digits.is_match(text) {
            return None;
        }
        let quotas: Option<Vec<Quota>> = text
            .split([';', ','])
            .map(|part| self.quota(part))
            .collect();
        QuotaList::try_from(quotas?).ok()
    }
}

fn number(groups: &Captures<'_>, index: usize) -> Option<u64> {
    groups.get(index)?.as_str().parse().ok()
}

/// Calls `visit` with every row of up to `longest` tokens behind `text`.
fn for_each_text(tokens: &[&str], longest: usize, text: &mut String, visit: &mut impl FnMut(&str)) {
    visit(text);
    if longest == 0 {
        return;
    }
    for token in tokens {
        let length = text.len();
        text.push_str(token);
        for_each_text(tokens, longest - 1, text, visit);
        text.truncate(length);
    }
}

#[test]
fn a_short_text_is_one_quota_exactly_when_the_grammar_says_so() {
    let tokens = [
        "0", "1", "/", " ", "per", "s", "ms", "burst", " burst ", ";", ",", ".", "-", "_",
    ];
    let grammar = Grammar::new();
    let mut accepted = 0;
    for_each_text(&tokens, 5, &mut String::new(), &mut |text| {
        let quota = text.parse::<Quota>().ok();
        assert_eq!(quota, grammar.quota(text), "{text:?}");
        if let Some(quota) = quota {
            assert_eq!(quota.to_string().parse(), Ok(quota), "{text:?}");
            accepted += 1;
        }
    });
    assert!(accepted > 100, "only {accepted} texts were quotas");
}

#[test]
fn a_short_text_is_a_list_exactly_when_the_grammar_says_so() {
    let tokens = ["1/s", "0", "1", "/", "m", " burst ", " ", ";", ","];
    let grammar = Grammar::new();
    let mut accepted = 0;
    for_each_text(&tokens, 6, &mut String::new(), &mut |text| {
        let list = text.parse::<QuotaList>().ok();
        assert_eq!(list, grammar.list(text), "{text:?}");
        if let Some(list) = list {
            assert_eq!(list.to_string().parse(), Ok(list), "{text:?}");
            accepted += 1;
        }
    });
    assert!(accepted > 100, "only {accepted} texts were lists");
}
