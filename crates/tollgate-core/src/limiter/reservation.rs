//! Charging first and correcting later, when the real cost is known.

use crate::algorithm::{Op, Settlement};
use crate::batch::Check;
use crate::cost::Cost;
use crate::decision::{Charge, Decision, Report, Source};
use crate::error::Result;
use crate::limiter::{Limiter, Policies, counted};
use crate::store::Store;
use crate::time::Timestamp;

/// The answer to [`Limiter::reserve`]: a decision and, if units were charged, the receipt to settle them with.
#[derive(Debug)]
#[must_use = "a reservation stays charged in full until its receipt is settled"]
pub struct Reservation<'a> {
    decision: Decision<'a>,
    receipt: Option<Receipt>,
}

impl<'a> Reservation<'a> {
    /// The decision.
    pub const fn decision(&self) -> &Decision<'a> {
        &self.decision
    }

    /// The receipt; `None` if nothing was charged: the hit was denied, the store could not answer, or all
    /// policies are in shadow mode and would have denied it.
    #[must_use]
    pub fn into_receipt(self) -> Option<Receipt> {
        self.receipt
    }
}

/// Proof of a charge, to be settled once when its real cost is known.
///
/// It is worth nothing twice: settling consumes it. Dropping it leaves the charge as it is.
#[derive(Debug)]
#[must_use = "dropping a receipt leaves the whole charge in place"]
pub struct Receipt {
    policies: Policies,
    subject: Box<[u8]>,
    charged_at: Timestamp,
    charged: Cost,
    source: Source,
    charges: Box<[Charge]>,
}

impl Receipt {
    /// The receipt for what `decision` charged, if it charged anything.
    fn of(
        decision: &Decision<'_>,
        policies: &Policies,
        subject: &[u8],
        charged: Cost,
    ) -> Option<Self> {
        let mut charges: Vec<_> = decision.charges().collect();
        let is_enforced = |charge: &&Charge| !policies.bound()[charge.policy].policy.is_shadow();
        let first = charges.iter().find(is_enforced).or(charges.first())?;
        let (charged_at, source) = (first.at, first.source);
        // The store came or went between two calls: what a stand-in charged is not settled in the store.
        charges.retain(|charge| charge.source.is_degraded() == source.is_degraded());
        Some(Self {
            policies: policies.clone(),
            subject: subject.into(),
            charged_at,
            charged,
            source,
            charges: charges.into(),
        })
    }

    /// What corrects the charge, for each policy in shadow mode or each that is not; `None` where nothing was charged.
    fn corrections(&self, shadow: bool, actual: u64) -> Result<Vec<Option<Check<'_>>>> {
        let bound = self.policies.bound().iter().enumerate();
        let wanted = bound.filter(|(_, bound)| bound.policy.is_shadow() == shadow);
        let corrections = wanted.map(|(policy, bound)| {
            let mut charges = self.charges.iter();
            let charge = charges.find(|charge| charge.policy == policy);
            let op = charge.map(|charge| {
                Op::Settle(Settlement {
                    charged_at: charge.at,
                    charged: self.charged,
                    mark: charge.mark,
                    actual,
                })
            });
            op.map(|op| bound.check(&self.subject, op)).transpose()
        });
        corrections.collect()
    }

    /// What was charged.
    #[must_use]
    pub const fn charged(&self) -> Cost {
        self.charged
    }

    /// When it was charged, on the store's clock.
    #[must_use]
    pub const fn charged_at(&self) -> Timestamp {
        self.charged_at
    }

    /// Who charged it.
    ///
    /// A charge whose source [is degraded](Source::is_degraded) lies with whatever stood in for the store, and not in
    /// the store itself.
    #[must_use]
    pub const fn source(&self) -> Source {
        self.source
    }
}

impl<S: Store> Limiter<S> {
    /// Takes `units` for `subject` like [`hit_n`](Self::hit_n), with a receipt to correct the charge by.
    ///
    /// For work whose cost is known only afterwards: charge an estimate, do the work, [`settle`](Self::settle).
    ///
    /// The receipt also covers the policies in shadow mode that were charged.
    ///
    /// # Errors
    /// As [`hit_n`](Self::hit_n).
    pub async fn reserve(
        &self,
        subject: impl AsRef<[u8]> + Send + Sync,
        units: u64,
    ) -> Result<Reservation<'_>> {
        let subject = subject.as_ref();
        let charged = Cost::new(units)?;
        let decision = self.ask(subject, Op::Hit(charged)).await?;
        let receipt = Receipt::of(&decision, &self.policies, subject, charged);
        Ok(Reservation { decision, receipt })
    }

    /// Corrects the charge behind `receipt` to `actual` units; zero gives all of it back.
    ///
    /// What was charged too much is given back where it still counts: within the same window, or as far as it has not
    /// drained from the bucket. What was used on top is charged even past the limit: the debt is paid by waiting.
    /// `self` must enforce on the store that the receipt came from.
    ///
    /// Charges under policies in shadow mode are corrected too, each in a call of its own.
    ///
    /// # Errors
    /// The store's own trouble: a correction that may not have happened is never reported as one. The receipt is used
    /// up all the same, since a second attempt might count twice. Trouble with a policy in shadow mode is no error; it is
    /// named in [`Report::shadow_failed`].
    pub async fn settle(&self, receipt: Receipt, actual: u64) -> Result<Report> {
        let checks = receipt.corrections(false, actual)?.into_iter().flatten();
        let checks: Vec<_> = checks.collect();
        let enforced = match self.batch(&checks)? {
            Some(batch) => {
                let batch = batch.charged_by(receipt.source);
                Some(counted(self.store.apply(batch).await, checks.len())?)
            }
            None => None,
        };
        let mut shadows = Vec::new();
        for check in receipt.corrections(true, actual)? {
            shadows.push(match check {
                Some(check) => Some(self.ask_alone(&check, receipt.source).await),
                None => None,
            });
        }
        let (policies, charged) = (&receipt.policies, receipt.charged);
        Ok(Decision::shadowed(policies, enforced, shadows, charged, false).to_report())
    }
}
