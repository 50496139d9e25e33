//! One policy under one algorithm, played against the traffic, and what came of it.

use std::time::Duration;

use anyhow::{Result, ensure};
use hashbrown::HashMap;
use tollgate_core::{
    Algorithm, Batch, Check, Cost, Key, Op, Policy, PolicyDecision, QuotaList, Space, State,
    Timestamp, Verdicts,
};

use super::order::Hit;
use super::subjects::SubjectId;

/// States kept before the first sweep for those that no longer matter.
const FIRST_SWEEP: usize = 4096;
/// The states of all subjects are kept by their numbers here, so the keys of a batch only have to differ.
const ANY_SUBJECT: &[u8] = b"subject";

/// One policy under one algorithm.
#[derive(Debug)]
pub(crate) struct Run {
    quotas: QuotaList,
    algorithm: Algorithm,
    limits: Vec<Limit>,
    states: HashMap<SubjectId, Box<[Option<State>]>>,
    sweep_at: usize,
    tally: Tally,
}

/// One quota of the policy; all of them have to admit a hit.
#[derive(Debug)]
struct Limit {
    policy: Policy,
    space: Space,
}

impl Run {
    /// # Errors
    ///
    /// The algorithm cannot enforce the quotas: some have no burst.
    pub(crate) fn new(quotas: &QuotaList, algorithm: Algorithm) -> Result<Self> {
        ensure!(
            quotas.as_slice().len() <= Batch::MAX_CHECKS,
            "a policy of {} quotas; at most {} hold together",
            quotas.as_slice().len(),
            Batch::MAX_CHECKS
        );
        let mut limits = Vec::new();
        for (number, quota) in quotas.iter().enumerate() {
            let policy = Policy::new(&format!("quota-{number}"), algorithm, *quota)?;
            let space = Space::new("", "", &policy);
            limits.push(Limit { policy, space });
        }
        Ok(Self {
            quotas: quotas.clone(),
            algorithm,
            limits,
            states: HashMap::new(),
            sweep_at: FIRST_SWEEP,
            tally: Tally::default(),
        })
    }

    /// Judges one hit, counts the answer and says whether the hit was admitted.
    ///
    /// Hits come in the order of their times.
    pub(crate) fn play(&mut self, hit: Hit) -> bool {
        let quotas = self.limits.len();
        let states = self
            .states
            .entry(hit.subject)
            .or_insert_with(|| vec![None; quotas].into_boxed_slice());
        let verdicts = judge(&self.limits, states, hit);
        let is_allowed = verdicts.is_allowed();
        if is_allowed {
            let delay = longest_delay(&self.limits, &verdicts, hit.cost);
            self.tally.count_admitted(hit, delay);
        } else {
            self.tally.count_denied(hit);
        }
        if self.states.len() > self.sweep_at {
            self.sweep(hit.time);
        }
        is_allowed
    }

    /// Drops the states that are as good as never seen. Waiting for twice as many as were left makes a hit's share of
    /// the work constant.
    fn sweep(&mut self, now: Timestamp) {
        let limits = &self.limits;
        self.states.retain(|_, states| {
            limits.iter().zip(states.iter()).any(|(limit, state)| {
                state
                    .as_ref()
                    .is_some_and(|state| limit.policy.rule().reset_after(state, now) > 0)
            })
        });
        self.sweep_at = FIRST_SWEEP.max(self.states.len() * 2);
    }

    pub(crate) fn quotas(&self) -> &QuotaList {
        &self.quotas
    }

    pub(crate) fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    pub(crate) fn tally(&self) -> &Tally {
        &self.tally
    }
}

fn judge(limits: &[Limit], states: &mut [Option<State>], hit: Hit) -> Verdicts {
    let op = Op::Hit(hit.cost);
    if let ([limit], [state]) = (limits, &mut *states) {
        return Verdicts::one(hit.time, limit.policy.rule().step(state, hit.time, op));
    }
    let key = |limit| Key::new(limit, ANY_SUBJECT).expect("the subject is not empty");
    let checks: Vec<Check<'_>> = limits
        .iter()
        .map(|limit| Check {
            key: key(&limit.space),
            policy: &limit.policy,
            op,
        })
        .collect();
    let batch = Batch::new(&checks).expect("the quotas are few enough, and no two share a space");
    batch.step(states, hit.time)
}

/// How long the hit waits in the queue of a leaky bucket.
fn longest_delay(limits: &[Limit], verdicts: &Verdicts, cost: Cost) -> Duration {
    let decisions = limits.iter().zip(verdicts.as_slice());
    let delays = decisions.map(|(limit, verdict)| {
        PolicyDecision::from_verdict(&limit.policy, *verdict, verdicts.at(), cost, true).delay()
    });
    delays.max().unwrap_or_default()
}

/// What came of a run.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) admitted: u64,
    pub(crate) denied: u64,
    /// Costs added up.
    pub(crate) admitted_units: u128,
    pub(crate) denied_units: u128,
    /// Denied hits of every subject that had one denied.
    pub(crate) denied_by_subject: HashMap<SubjectId, u64>,
    /// Most hits admitted within one second of the clock.
    pub(crate) peak: Peak,
    /// Longest wait in the queue of a leaky bucket; zero for the other algorithms.
    pub(crate) longest_delay: Duration,
    current: Peak,
}

/// Hits admitted within one second of the clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Peak {
    pub(crate) second: u64,
    pub(crate) hits: u64,
}

impl Tally {
    fn count_admitted(&mut self, hit: Hit, delay: Duration) {
        self.admitted += 1;
        self.admitted_units += u128::from(hit.cost.get());
        self.longest_delay = self.longest_delay.max(delay);
        let second = hit.time.as_micros() / 1_000_000;
        if second != self.current.second {
            self.current = Peak { second, hits: 0 };
        }
        self.current.hits += 1;
        if self.current.hits > self.peak.hits {
            self.peak = self.current;
        }
    }

    fn count_denied(&mut self, hit: Hit) {
        self.denied += 1;
        self.denied_units += u128::from(hit.cost.get());
        *self.denied_by_subject.entry(hit.subject).or_default() += 1;
    }

    /// The subjects with the most denied hits, most first, those with equally many in the order they were first seen.
    pub(crate) fn worst(&self, count: usize) -> Vec<(SubjectId, u64)> {
        let mut all: Vec<(SubjectId, u64)> = self
            .denied_by_subject
            .iter()
            .map(|(id, denied)| (*id, *denied))
            .collect();
        all.sort_unstable_by_key(|(id, denied)| (std::cmp::Reverse(*denied), *id));
        all.truncate(count);
        all
    }
}

#[cfg(test)]
mod tests {
    use super::super::subjects::Subjects;
    use super::*;

    const SECOND: u64 = 1_000_000;

    fn hit(subject: SubjectId, micros: u64) -> Hit {
        Hit {
            time: Timestamp::from_micros(micros).unwrap(),
            subject,
            cost: Cost::ONE,
        }
    }

    fn subjects(count: u32) -> Vec<SubjectId> {
        let mut subjects = Subjects::default();
        (0..count)
            .map(|number| subjects.id_of(&number.to_string()).unwrap())
            .collect()
    }

    #[test]
    fn dropping_idle_states_changes_no_answer_and_bounds_how_many_there_are() {
        let ids = subjects(30_000);
        for algorithm in Algorithm::ALL {
            let quota = "2/10 seconds".parse().unwrap();
            let mut run = Run::new(&QuotaList::from(quota), algorithm).unwrap();
            let policy = Policy::new("kept", algorithm, quota).unwrap();
            let mut kept: HashMap<SubjectId, Option<State>> = HashMap::new();
            for step in 0..60_000_u64 {
                // Every subject comes four times in a row, and again two hours later.
                let index = usize::try_from(step / 4 * 7 % 7_500).unwrap() * 4;
                let hit = hit(ids[index], step * SECOND / 4);
                let state = kept.entry(hit.subject).or_default();
                let expected = policy
                    .rule()
                    .step(state, hit.time, Op::Hit(hit.cost))
                    .is_allowed();
                assert_eq!(run.play(hit), expected, "{algorithm} at step {step}");
                assert!(run.states.len() <= FIRST_SWEEP + 1);
            }
            assert!(kept.len() > FIRST_SWEEP, "there was something to drop");
        }
    }

    #[test]
    fn quotas_that_hold_together_charge_all_or_none() {
        let client = subjects(1)[0];
        let mut run = Run::new(
            &"1/second; 3/minute".parse().unwrap(),
            Algorithm::FixedWindow,
        )
        .unwrap();
        // The second hit of each second is denied and must not count towards the minute.
        let answers: Vec<bool> = [0, 0, 1, 1, 2, 2, 3]
            .map(|second| run.play(hit(client, second * SECOND)))
            .into();
        assert_eq!(answers, [true, false, true, false, true, false, false]);
    }

    #[test]
    fn the_peak_is_the_busiest_second_of_the_clock() {
        let ids = subjects(1);
        let mut run = Run::new(&"2/ms".parse().unwrap(), Algorithm::TokenBucket).unwrap();
        for micros in [0, 999_000, 1_000_000, 1_001_000, 1_999_999, 2_000_000] {
            run.play(hit(ids[0], micros));
        }
        assert_eq!(run.tally().peak, Peak { second: 1, hits: 3 });
    }

    #[test]
    fn a_leaky_bucket_reports_the_longest_wait() {
        let client = subjects(1)[0];
        let delays = [Algorithm::LeakyBucket, Algorithm::TokenBucket].map(|algorithm| {
            let mut run = Run::new(&"3/minute".parse().unwrap(), algorithm).unwrap();
            for _ in 0..5 {
                run.play(hit(client, 0));
            }
            assert_eq!((run.tally().admitted, run.tally().denied), (3, 2));
            run.tally().longest_delay
        });
        assert_eq!(delays, [Duration::from_secs(40), Duration::ZERO]);
    }

    #[test]
    fn the_worst_subjects_come_first_and_ties_in_the_order_they_were_seen() {
        let ids = subjects(4);
        let mut run = Run::new(&"1/minute".parse().unwrap(), Algorithm::Gcra).unwrap();
        for (index, hits) in [(0, 2), (1, 4), (2, 1), (3, 2)] {
            for _ in 0..hits {
                run.play(hit(ids[index], 0));
            }
        }
        assert_eq!(
            run.tally().worst(5),
            [(ids[1], 3), (ids[0], 1), (ids[3], 1)]
        );
        assert_eq!(run.tally().worst(1), [(ids[1], 3)]);
    }

    #[test]
    fn units_add_up_beyond_64_bits() {
        let client = subjects(1)[0];
        let mut run = Run::new(&"1/minute".parse().unwrap(), Algorithm::SlidingLog).unwrap();
        for _ in 0..3 {
            run.play(Hit {
                cost: Cost::new(u64::MAX).unwrap(),
                ..hit(client, 0)
            });
        }
        assert_eq!(run.tally().denied_units, u128::from(u64::MAX) * 3);
    }

    #[test]
    fn more_quotas_than_a_batch_holds_are_refused() {
        let text = vec!["1/second"; Batch::MAX_CHECKS + 1].join("; ");
        let error = Run::new(&text.parse().unwrap(), Algorithm::Gcra).unwrap_err();
        assert!(error.to_string().contains("at most 64"), "{error}");
    }
}
