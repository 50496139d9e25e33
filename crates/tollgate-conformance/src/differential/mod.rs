//! Random sequences in virtual time, which a store must answer as core does, bit for bit.

mod generate;
mod oracle;
mod play;
mod policies;
mod sequence;
mod shrink;

use tollgate_core::Algorithm;

use crate::case::{Case, Family, stories, stories_of_each_algorithm};
use crate::differential::generate::Profile;
use crate::differential::sequence::Sequence;
use crate::outcome::{Outcome, Stop};
use crate::testbed::TestBed;

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = stories_of_each_algorithm![Family::Differential =>
        random_sequences as "{}_answers_random_sequences_as_core_does",
    ];
    cases.extend(stories![Family::Differential =>
        batches_of_all_algorithms_are_answered_as_core_does,
        limits_changed_at_run_time_keep_the_usage_as_core_does,
        quotas_at_the_extremes_are_answered_as_core_does,
        answers_without_a_future_are_the_same,
    ]);
    cases
}

async fn random_sequences(bed: TestBed, algorithm: Algorithm) -> Outcome {
    let only = [algorithm];
    compare(&bed, &Profile::of(&only)).await
}

async fn batches_of_all_algorithms_are_answered_as_core_does(bed: TestBed) -> Outcome {
    let profile = Profile {
        batches: true,
        ..Profile::of(&Algorithm::ALL)
    };
    compare(&bed, &profile).await
}

async fn limits_changed_at_run_time_keep_the_usage_as_core_does(bed: TestBed) -> Outcome {
    let profile = Profile {
        changing_policies: true,
        ..Profile::of(&Algorithm::ALL)
    };
    compare(&bed, &profile).await
}

async fn quotas_at_the_extremes_are_answered_as_core_does(bed: TestBed) -> Outcome {
    let profile = Profile {
        extreme_quotas: true,
        ..Profile::of(&Algorithm::ALL)
    };
    compare(&bed, &profile).await
}

async fn answers_without_a_future_are_the_same(bed: TestBed) -> Outcome {
    if !bed.answers_at_once() {
        return Err(Stop::NotApplicable(
            "the store answers by futures only".to_owned(),
        ));
    }
    let profile = Profile {
        batches: true,
        at_once: true,
        ..Profile::of(&Algorithm::ALL)
    };
    compare(&bed, &profile).await
}

/// Plays as many random sequences of `profile` as the run asks for.
async fn compare(bed: &TestBed, profile: &Profile<'_>) -> Outcome {
    bed.needs_virtual_time()?;
    let any_keys = bed.capabilities().atomic_any_keys;
    let first = bed.options.seed.unwrap_or_else(|| fastrand::u64(..));
    for nth in 0..bed.options.sequences {
        let seed = first.wrapping_add(nth);
        let sequence = generate::sequence(profile, any_keys, seed);
        let Err(stop) = play::play(&bed.untouched(), &sequence).await else {
            continue;
        };
        let (shortest, stop) = shrink::shrink(bed, sequence, stop).await;
        return Err(with_story(stop, seed, &shortest));
    }
    Ok(())
}

/// The failure, with how to see it again and what led to it in front.
fn with_story(stop: Stop, seed: u64, sequence: &Sequence) -> Stop {
    let Stop::Failed(message) = stop else {
        return stop;
    };
    Stop::Failed(format!(
        "sequence {seed} (to see it again, set TOLLGATE_SEED={seed} and TOLLGATE_CASES=1)\n{sequence}{message}"
    ))
}
