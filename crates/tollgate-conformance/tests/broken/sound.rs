//! The unbroken twins of the stores here pass everything, so that what fails fails for its fault.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tollgate_conformance::{CaseResult, Ending, Fresh, ReferenceStore, run};
use tollgate_core::{Batch, Capabilities, CasStore, InProcessStore, Key, Result, Store, Verdicts};

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

/// A sound store at the other end of a network.
#[derive(Debug, Default)]
struct Distant(ReferenceStore);

/// Longer for some calls than for others, so that they overtake each other.
async fn travel() {
    static CALLS: AtomicU64 = AtomicU64::new(0);
    let nth = CALLS.fetch_add(1, Ordering::Relaxed);
    tokio::time::sleep(Duration::from_micros(nth % 5 * 200)).await;
}

impl Store for Distant {
    async fn apply<'a>(&'a self, batch: Batch<'a>) -> Result<Verdicts> {
        travel().await;
        let answer = self.0.judge(&batch);
        travel().await;
        answer
    }

    async fn reset<'a>(&'a self, keys: &'a [Key<'a>]) -> Result<u64> {
        travel().await;
        self.0.reset(keys).await
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::ALL
    }
}

#[test]
fn a_sound_store_across_a_network_passes_everything() {
    let distant = Fresh::new("distant", || async { Ok(Distant::default()) });
    assert_eq!(failed(&run(distant, &[], &options().sequences(5))), [""; 0]);
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
