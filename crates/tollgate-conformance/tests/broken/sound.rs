//! The unbroken twins of the stores here pass everything, so that what fails fails for its fault.

use tollgate_conformance::{CaseResult, Ending, Fresh, ReferenceStore, run};
use tollgate_core::CasStore;

use crate::judge::{Judging, sound};
use crate::map_harness::MapHarness;
use crate::{failed, options};

fn left_out(results: &[CaseResult]) -> Vec<String> {
    let left_out = results
        .iter()
        .filter(|result| matches!(result.ending, Ending::LeftOut(_)));
    left_out.map(|result| result.name.clone()).collect()
}

#[test]
fn a_sound_judge_passes_everything() {
    let results = run(Judging::by(sound), &[], &options());
    assert_eq!(failed(&results), [""; 0]);
}

#[test]
fn a_store_with_every_hook_passes_everything_and_has_nothing_left_out() {
    let harness = MapHarness::new("map", CasStore::new);
    let results = run(harness, &[], &options().require_all(true));
    assert_eq!(failed(&results), [""; 0]);
    assert_eq!(left_out(&results), [""; 0]);
}

#[test]
fn what_cannot_be_checked_is_left_out_and_fails_where_everything_is_required() {
    let reference = || Fresh::new("reference", || async { Ok(ReferenceStore::default()) });
    let results = run(reference(), &[], &options());
    assert_eq!(failed(&results), [""; 0]);
    let left_out = left_out(&results);
    assert!(!left_out.is_empty());

    let required = run(reference(), &[], &options().require_all(true));
    assert_eq!(failed(&required), left_out);
}
