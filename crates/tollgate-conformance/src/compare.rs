//! Holds a store's verdicts to core's.

use std::fmt::Write as _;

use tollgate_core::{Check, Verdicts};

use crate::counter::Answer;
use crate::outcome::{Outcome, Stop};

/// Fails unless the store's verdicts are core's, bit for bit. Who gave the answer is the store's business.
pub(crate) fn same(checks: &[Check<'_>], got: &Verdicts, expected: &Verdicts) -> Outcome {
    if got.at() == expected.at() && got.as_slice() == expected.as_slice() {
        return Ok(());
    }
    let mut message = "the store and core disagree".to_owned();
    for (nth, check) in checks.iter().enumerate() {
        // Of sixty-four checks, those that agree are no news.
        if got.at() == expected.at() && got.as_slice().get(nth) == expected.as_slice().get(nth) {
            continue;
        }
        for (who, verdicts) in [("the store", got), ("core", expected)] {
            let line = match verdicts.as_slice().get(nth) {
                None => "no answer".to_owned(),
                Some(verdict) => {
                    let source = verdicts.source();
                    let answer = Answer::new(check, *verdict, verdicts.at(), source, false);
                    format!("{answer} ({verdict:?})")
                }
            };
            // Writing to a string cannot fail.
            let _ = write!(message, "\n  check {}, {who}: {line}", nth + 1);
        }
    }
    Err(Stop::failed(message))
}
