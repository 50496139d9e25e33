//! The way back: what the stand-in charged is charged to the store, before anything else is.

use tollgate_core::{
    Batch, Check, Cost, Error, ErrorKind, FailureMode, InProcessStore, Op, Result, Rule,
    Settlement, Store, Verdicts,
};

use super::Fallback;
use super::ledger::{Dues, Payment};
use super::stand_in::unjudged;

impl<S: Store, L: InProcessStore> Fallback<S, L> {
    /// Pays what the keys of `batch` owe, or waits until others have.
    ///
    /// An error is the store's: it is away still.
    pub(super) async fn hand_back(&self, batch: &Batch<'_>) -> Result<()> {
        if self.debts() == 0 {
            return Ok(());
        }
        let now = self.stand_in.now(batch)?;
        let keys = batch.checks().iter().map(|check| check.key);
        let Some(Dues { payment, others }) = self.stand_in.ledger.take_on(keys.clone(), now) else {
            return Ok(());
        };
        self.pay(batch, payment).await?;
        if others.is_empty() {
            return Ok(());
        }
        for mut other in others {
            // An error says that the other call is done, which is all that can happen.
            let _ = other.changed().await;
        }
        if self.stand_in.ledger.owes(keys) {
            return Err(Error::new(
                ErrorKind::Unavailable,
                "a call on the same key has just found the store away",
            ));
        }
        Ok(())
    }

    async fn pay(&self, batch: &Batch<'_>, mut payment: Payment<'_>) -> Result<()> {
        let mut settlements = Vec::with_capacity(payment.dues().len());
        for due in payment.dues() {
            let check = &batch.checks()[due.place];
            let (owed, at) = self
                .stand_in
                .still_counts(check, batch.instant(), due.owed)?;
            if owed > 0 {
                // A charge of one unit that turns out to have cost `owed` more is charged even past the limit.
                let settlement = Settlement {
                    charged_at: at,
                    charged: Cost::ONE,
                    mark: 0,
                    actual: owed.saturating_add(1),
                };
                settlements.push(Check {
                    op: Op::Settle(settlement),
                    ..*check
                });
            }
        }
        if !settlements.is_empty() {
            // Whether the store is there is asked by a call that charges nothing, so that a payment is hardly ever lost.
            let mut probe = settlements.clone();
            for check in &mut probe {
                check.op = Op::Peek(Cost::ONE);
            }
            self.store
                .apply(Batch::new(&probe)?.at(batch.instant()))
                .await?;
            settlements.retain(|check| payment.is_due(&check.key));
            if settlements.is_empty() {
                return Ok(());
            }
            payment.sent();
            let paid = self
                .store
                .apply(Batch::new(&settlements)?.at(batch.instant()))
                .await;
            if let Err(error) = paid {
                if !error.may_have_charged() {
                    payment.not_sent();
                }
                return Err(error);
            }
        }
        payment.sent();
        Ok(())
    }

    /// Settles at the store what the stand-in charged and has handed back.
    pub(super) async fn settle_at_store(&self, batch: &Batch<'_>) -> Result<Verdicts> {
        let charged: Vec<Check<'_>> = batch
            .checks()
            .iter()
            .filter(|check| batch.failure_mode(check) != Some(FailureMode::Open))
            .map(|check| self.for_the_store(check))
            .collect();
        if charged.len() == batch.checks().len() {
            return self
                .store
                .apply(Batch::new(&charged)?.at(batch.instant()))
                .await;
        }
        // The others were admitted unjudged: nothing was charged for them, and there is nothing to settle.
        let (at, settled) = if charged.is_empty() {
            (self.stand_in.now(batch)?, None)
        } else {
            let settled = Batch::new(&charged)?.at(batch.instant());
            let settled = self.store.apply(settled).await?;
            (settled.at(), Some(settled))
        };
        let mut settled = settled.iter().flat_map(Verdicts::as_slice);
        let verdicts = batch.checks().iter().map(|check| {
            let is_open = batch.failure_mode(check) == Some(FailureMode::Open);
            let verdict = if is_open { None } else { settled.next() };
            verdict.copied().unwrap_or_else(|| unjudged(check, at))
        });
        Ok(Verdicts::many(at, verdicts.collect()))
    }

    /// The same settlement in the weights of the store's rule.
    ///
    /// A bucket's units are taken to have entered an empty one when the stand-in charged them, and to drain at the whole
    /// rate since. In truth they entered the store later and behind others, so this gives back too little, never too much.
    fn for_the_store<'a>(&self, check: &Check<'a>) -> Check<'a> {
        let mut check = *check;
        if let (Op::Settle(settlement), Rule::Bucket(whole)) = (&mut check.op, check.policy.rule())
            && let Rule::Bucket(share) = self.stand_in.shares.of(check.policy).rule()
        {
            let units = settlement.mark / share.unit();
            settlement.mark = units.saturating_mul(whole.unit());
        }
        check
    }
}
