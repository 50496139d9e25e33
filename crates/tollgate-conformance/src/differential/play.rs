//! Plays a sequence on a store and on core's specification, side by side.

use tollgate_core::{Batch, Check, Store, Timestamp};

use crate::compare::same;
use crate::counter::Counter;
use crate::differential::oracle::Oracle;
use crate::differential::sequence::{Ask, Sequence, Step};
use crate::outcome::{Outcome, ensure};
use crate::testbed::TestBed;

/// Plays `sequence` on keys that nobody has used.
pub(crate) async fn play(bed: &TestBed, sequence: &Sequence) -> Outcome {
    let bed_at_once = bed.at_once();
    let mut oracle = Oracle::new(sequence.slots.len());
    for (index, step) in sequence.steps.iter().enumerate() {
        let taken = match step {
            Step::Reset(slots) => reset(bed, sequence, &mut oracle, slots).await,
            Step::Ask { at, asks, at_once } => {
                let bed = if *at_once { &bed_at_once } else { bed };
                ask(bed, sequence, &mut oracle, *at, asks).await
            }
        };
        taken.map_err(|stop| stop.context(format!("in step {}", index + 1)))?;
    }
    Ok(())
}

async fn reset(
    bed: &TestBed,
    sequence: &Sequence,
    oracle: &mut Oracle,
    slots: &[usize],
) -> Outcome {
    let counters: Vec<Counter> = slots
        .iter()
        .map(|slot| sequence.slots[*slot].counter(bed.prefix(), 0))
        .collect();
    let found = bed.reset(&counters).await?;
    let (least, most) = oracle.reset(slots);
    ensure!(
        (least..=most).contains(&found),
        "the reset found {found} keys, but there were {least} to {most}"
    );
    Ok(())
}

async fn ask(
    bed: &TestBed,
    sequence: &Sequence,
    oracle: &mut Oracle,
    at: Timestamp,
    asks: &[Ask],
) -> Outcome {
    let counters: Vec<Counter> = asks
        .iter()
        .map(|ask| sequence.slots[ask.slot].counter(bed.prefix(), ask.policy))
        .collect();
    for (ask, counter) in asks.iter().zip(&counters) {
        if oracle.may_have_been_dropped(ask, at) {
            bed.reset([counter]).await?;
            oracle.forget(ask.slot);
        }
    }
    let checks: Vec<Check<'_>> = asks
        .iter()
        .zip(&counters)
        .map(|(ask, counter)| counter.check(ask.op))
        .collect();
    let batch = Batch::new(&checks)?.at(Some(at));
    let expected = oracle.judge(&sequence.slots, &batch, asks, at);
    let got = bed.store().apply(batch).await?;
    same(&checks, &got, &expected)
}
