//! Asking about policies in shadow mode: after the enforced ones, each in a call of its own.

use crate::algorithm::Op;
use crate::batch::{Batch, Check, Verdicts};
use crate::decision::{Decision, ShadowAnswer, Source};
use crate::error::Result;
use crate::limiter::{Limiter, counted};
use crate::store::{InProcessStore, Store};

impl<S: Store> Limiter<S> {
    pub(super) async fn ask_with_shadows(&self, subject: &[u8], op: Op) -> Result<Decision<'_>> {
        let checks = self.checks(subject, op)?;
        let enforced = match self.batch(&checks)? {
            Some(batch) => Some(counted(self.store.apply(batch).await, checks.len())),
            None => None,
        };
        let enforced = match enforced.transpose() {
            Ok(enforced) => enforced,
            Err(error) => return self.fail(error, op.cost()),
        };
        let mut shadows = Vec::new();
        for check in self.shadow_checks(subject, op, enforced.as_ref())? {
            shadows.push(Some(self.ask_alone(&check, Source::Store).await));
        }
        Ok(self.with_shadows(enforced, shadows, op))
    }

    /// Asks about one policy in a call of its own. What is settled was charged by `source`.
    pub(super) async fn ask_alone(&self, check: &Check<'_>, source: Source) -> Result<Verdicts> {
        let batch = self.timed(Batch::of_one(check)).charged_by(source);
        counted(self.store.apply(batch).await, 1)
    }

    fn with_shadows(
        &self,
        enforced: Option<Verdicts>,
        shadows: Vec<ShadowAnswer>,
        op: Op,
    ) -> Decision<'_> {
        let charges = matches!(op, Op::Hit(_));
        Decision::shadowed(&self.policies, enforced, shadows, op.cost(), charges)
    }

    /// The call for the enforced policies; `None` if there is none.
    pub(super) fn batch<'a>(&self, checks: &'a [Check<'a>]) -> Result<Option<Batch<'a>>> {
        if checks.is_empty() {
            return Ok(None);
        }
        Ok(Some(self.timed(Batch::new(checks)?)))
    }

    /// What is asked about the policies in shadow mode, in order, once the enforced ones have answered.
    fn shadow_checks<'a>(
        &'a self,
        subject: &'a [u8],
        op: Op,
        enforced: Option<&Verdicts>,
    ) -> Result<Vec<Check<'a>>> {
        let op = match enforced {
            Some(verdicts) if !verdicts.is_allowed() => Op::Peek(op.cost()),
            _ => op,
        };
        let shadows = self.policies.shadows();
        shadows.map(|bound| bound.check(subject, op)).collect()
    }
}

impl<S: InProcessStore> Limiter<S> {
    /// [`ask_with_shadows`](Self::ask_with_shadows) without a future.
    pub(super) fn ask_with_shadows_now(&self, subject: &[u8], op: Op) -> Result<Decision<'_>> {
        let checks = self.checks(subject, op)?;
        let enforced = self.batch(&checks)?;
        let enforced = enforced.map(|batch| counted(self.store.judge(&batch), checks.len()));
        let enforced = match enforced.transpose() {
            Ok(enforced) => enforced,
            Err(error) => return self.fail(error, op.cost()),
        };
        let checks = self.shadow_checks(subject, op, enforced.as_ref())?;
        let judge = |check| self.store.judge(&self.timed(Batch::of_one(check)));
        let answers = checks.iter().map(judge);
        let shadows = answers.map(|answer| Some(counted(answer, 1))).collect();
        Ok(self.with_shadows(enforced, shadows, op))
    }
}
