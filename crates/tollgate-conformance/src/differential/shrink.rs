//! Makes a failing sequence as short as it gets, so that its reader has little to read.

use crate::differential::play;
use crate::differential::sequence::{Sequence, Step};
use crate::outcome::Stop;
use crate::testbed::TestBed;

/// How many shorter sequences are tried: enough for a handful of steps, and still quick on a store across a network.
const MAX_TRIES: u32 = 400;

/// Drops steps and checks as long as what is left still fails. Returns the shortest with its failure.
pub(crate) async fn shrink(bed: &TestBed, failing: Sequence, stop: Stop) -> (Sequence, Stop) {
    let (mut shortest, mut stop) = (failing, stop);
    let mut tries = 0;
    let mut progress = true;
    while progress {
        progress = false;
        // From the end, so that indices of what comes before stay as they are.
        for index in (0..shortest.steps.len()).rev() {
            for shorter in without(&shortest, index) {
                if tries == MAX_TRIES {
                    return (shortest, stop);
                }
                tries += 1;
                if let Err(failure @ Stop::Failed(_)) = play::play(&bed.untouched(), &shorter).await
                {
                    (shortest, stop, progress) = (shorter, failure, true);
                    break;
                }
            }
        }
    }
    (shortest, stop)
}

/// `sequence` without step `index`, or without one of the checks in it.
fn without(sequence: &Sequence, index: usize) -> Vec<Sequence> {
    let mut shorter = vec![sequence.clone()];
    shorter[0].steps.remove(index);
    if let Some(Step::Ask { asks, .. }) = sequence.steps.get(index)
        && asks.len() > 1
    {
        for dropped in 0..asks.len() {
            let mut fewer = sequence.clone();
            if let Step::Ask { asks, .. } = &mut fewer.steps[index] {
                asks.remove(dropped);
            }
            shorter.push(fewer);
        }
    }
    shorter
}
