//! The kit's own tests: stores that are broken in one way each, and must be caught where they are.
//!
//! Every fault here is one that a limiter somewhere has had.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod charging;
mod faults;
mod judge;
mod keys;
mod leftovers;
#[path = "../map_harness/mod.rs"]
mod map_harness;
mod races;
mod sound;
mod stored;
mod tampering;
mod time;

use std::time::Duration;

use tollgate_conformance::{CaseResult, Ending, Family, Harness, Options, run};

/// Enough sequences to meet any fault here, the same ones every time.
fn options() -> Options {
    Options::new()
        .seed(1)
        .sequences(40)
        .patience(Duration::from_secs(20))
}

fn failed(results: &[CaseResult]) -> Vec<String> {
    let failed = results
        .iter()
        .filter(|result| matches!(result.ending, Ending::Failed(_)));
    failed.map(|result| result.name.clone()).collect()
}

/// Runs `family` and expects each of `cases` to have failed, by its name or a part of it.
#[track_caller]
fn caught(store: impl Harness, family: Family, cases: &[&str]) {
    let results = run(store, &[family], &options());
    let failed = failed(&results);
    assert!(!failed.is_empty(), "no case of {family} has failed");
    for case in cases {
        assert!(
            failed.iter().any(|name| name.contains(case)),
            "no case of {family} like {case:?} has failed, only {failed:?}"
        );
    }
}
