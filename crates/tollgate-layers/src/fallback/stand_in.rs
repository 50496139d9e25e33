//! The local store that judges while the real one is away.

use tollgate_core::{
    Batch, Check, Cost, Error, FailureMode, InProcessStore, Key, Op, Policy, PolicyDecision,
    Result, Rule, Settlement, Source, Timestamp, Verdict, Verdicts,
};

use super::ledger::Ledger;
use super::shares::Shares;

/// The local store, what it enforces, and what it has charged.
#[derive(Debug)]
pub(super) struct StandIn<L> {
    pub(super) local: L,
    pub(super) shares: Shares,
    pub(super) ledger: Ledger,
}

/// The checks of a batch that the stand-in answers for, under its share of their policies.
struct Part<'a> {
    /// Their places in the batch, ascending.
    places: Vec<usize>,
    keys: Vec<Key<'a>>,
    policies: Vec<Policy>,
}

impl Part<'_> {
    fn checks(&self, batch: &Batch<'_>) -> Vec<Check<'_>> {
        let parts = self.places.iter().zip(&self.keys).zip(&self.policies);
        parts
            .map(|((place, key), policy)| Check {
                key: *key,
                policy,
                op: batch.checks()[*place].op,
            })
            .collect()
    }
}

impl<L: InProcessStore> StandIn<L> {
    /// The checks that are not to be admitted unjudged.
    fn part<'a>(&self, batch: &Batch<'a>) -> Part<'a> {
        let mut part = Part {
            places: Vec::new(),
            keys: Vec::new(),
            policies: Vec::new(),
        };
        for (place, check) in batch.checks().iter().enumerate() {
            if batch.failure_mode(check) != Some(FailureMode::Open) {
                part.places.push(place);
                part.keys.push(check.key);
                part.policies.push(self.shares.of(check.policy));
            }
        }
        part
    }

    /// Judges `batch` in the place of the store that failed with `error`.
    pub(super) fn judge(&self, batch: &Batch<'_>, error: Error) -> Result<Verdicts> {
        let checks = batch.checks();
        let is_closed = |check: &Check<'_>| batch.failure_mode(check) == Some(FailureMode::Closed);
        let part = self.part(batch);
        if part.places.is_empty() || checks.iter().any(is_closed) {
            return Err(error);
        }
        if checks.iter().any(|check| matches!(check.op, Op::Settle(_))) {
            return self.settle(batch).unwrap_or(Err(error));
        }
        let local = part.checks(batch);
        let verdicts = self.ask(&local, batch.instant())?;
        self.owe(&local, &verdicts);
        Ok(compose(batch, &part, &verdicts))
    }

    fn ask(&self, checks: &[Check<'_>], at: Option<Timestamp>) -> Result<Verdicts> {
        self.local.judge(&Batch::new(checks)?.at(at))
    }

    /// Takes down what was charged.
    fn owe(&self, checks: &[Check<'_>], verdicts: &Verdicts) {
        let mut answers = checks.iter().zip(verdicts.as_slice());
        let denies = |(check, verdict): (&Check<'_>, &Verdict)| {
            matches!(check.op, Op::Hit(_)) && !verdict.is_allowed()
        };
        if answers.any(denies) {
            return;
        }
        let charges = checks.iter().enumerate().filter_map(|(index, check)| {
            let Op::Hit(cost) = check.op else {
                return None;
            };
            let told = PolicyDecision::from_verdicts(check.policy, verdicts, index, cost, true);
            Some((check.key, cost.get(), verdicts.at() + told.reset_after()))
        });
        self.ledger.charge(charges, verdicts.at());
    }

    /// Corrects what the stand-in charged, if the store knows nothing of it yet; `None` if that is not so.
    pub(super) fn settle(&self, batch: &Batch<'_>) -> Option<Result<Verdicts>> {
        if batch.settles_charges_of() != Source::Fallback {
            return None;
        }
        let part = self.part(batch);
        let local = part.checks(batch);
        let corrections: Option<Vec<(Key<'_>, Settlement)>> = local
            .iter()
            .map(|check| match check.op {
                Op::Settle(settlement) => Some((check.key, settlement)),
                Op::Hit(_) | Op::Peek(_) => None,
            })
            .collect();
        let settle = || self.ask(&local, batch.instant());
        let verdicts = self.ledger.settle(&corrections?, settle)?;
        Some(verdicts.map(|verdicts| compose(batch, &part, &verdicts)))
    }

    /// How many units of `owed` under `check` still count, and the reading of the stand-in's clock.
    pub(super) fn still_counts(
        &self,
        check: &Check<'_>,
        at: Option<Timestamp>,
        owed: u64,
    ) -> Result<(u64, Timestamp)> {
        let policy = self.shares.of(check.policy);
        let peek = Check {
            key: check.key,
            policy: &policy,
            op: Op::Peek(Cost::ONE),
        };
        let told = self.ask(&[peek], at)?;
        let used = policy.rule().used(&told.as_slice()[0], told.at());
        Ok((owed.min(used), told.at()))
    }

    /// Forgets what was charged to `keys`, and what they owe.
    pub(super) async fn forget(&self, keys: &[Key<'_>]) -> Result<()> {
        self.ledger.forgive(keys);
        self.local.reset(keys).await?;
        Ok(())
    }

    /// The stand-in's time.
    pub(super) fn now(&self, batch: &Batch<'_>) -> Result<Timestamp> {
        match batch.instant() {
            Some(at) => Ok(at),
            None => Ok(self.still_counts(&batch.checks()[0], None, 0)?.1),
        }
    }
}

/// The answers of `part`, and between them those of the checks that are admitted unjudged.
fn compose(batch: &Batch<'_>, part: &Part<'_>, verdicts: &Verdicts) -> Verdicts {
    let at = verdicts.at();
    let mut judged = part.policies.iter().zip(verdicts.as_slice());
    let answers = batch.checks().iter().enumerate().map(|(place, check)| {
        let judged = match part.places.binary_search(&place) {
            Ok(_) => judged.next(),
            Err(_) => None,
        };
        match judged {
            Some((policy, verdict)) => (*verdict, *policy.rule()),
            None => (unjudged(check, at), *check.policy.rule()),
        }
    });
    let (verdicts, rules): (Vec<Verdict>, Vec<Rule>) = answers.unzip();
    Verdicts::by_rules(at, verdicts.into(), rules.into())
}

/// Admits `check` as if its key had never been seen: like a settlement with nothing to settle.
pub(super) fn unjudged(check: &Check<'_>, at: Timestamp) -> Verdict {
    let cost = check.op.cost();
    let nothing = Settlement {
        charged_at: at,
        charged: cost,
        mark: 0,
        actual: cost.get(),
    };
    check.policy.rule().step(&mut None, at, Op::Settle(nothing))
}
