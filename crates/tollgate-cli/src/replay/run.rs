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
