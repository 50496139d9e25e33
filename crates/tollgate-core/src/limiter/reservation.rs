//! Charging first and correcting later, when the real cost is known.

use crate::algorithm::{Op, Settlement};
use crate::batch::{Batch, Check};
use crate::cost::Cost;
use crate::decision::{Decision, Report, Source};
use crate::error::{Error, ErrorKind, Result};
use crate::key::Key;
use crate::limiter::{Limiter, Policies};
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

    /// The receipt; `None` if nothing was charged: the hit was denied, or the store could not answer.
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
    marks: Box<[u64]>,
}

impl Receipt {
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
        let verdicts = decision.verdicts().filter(|verdicts| verdicts.is_allowed());
        let receipt = verdicts.map(|verdicts| Receipt {
            policies: self.policies.clone(),
            subject: subject.into(),
            charged_at: verdicts.at(),
            charged,
            source: verdicts.source(),
            marks: verdicts
                .as_slice()
                .iter()
                .map(crate::Verdict::mark)
                .collect(),
        });
        Ok(Reservation { decision, receipt })
    }

    /// Corrects the charge behind `receipt` to `actual` units; zero gives all of it back.
    ///
    /// What was charged too much is given back where it still counts: within the same window, or as far as it has not
    /// drained from the bucket. What was used on top is charged even past the limit: the debt is paid by waiting.
    /// `self` must enforce on the store that the receipt came from.
    ///
    /// # Errors
    /// The store's own trouble: a correction that may not have happened is never reported as one. The receipt is used
    /// up all the same, since a second attempt might count twice.
    pub async fn settle(&self, receipt: Receipt, actual: u64) -> Result<Report> {
        let Receipt {
            policies,
            subject,
            charged_at,
            charged,
            marks,
            ..
        } = receipt;
        let mut checks = Vec::with_capacity(marks.len());
        for (bound, mark) in policies.bound().iter().zip(marks) {
            let op = Op::Settle(Settlement {
                charged_at,
                charged,
                mark,
                actual,
            });
            checks.push(Check {
                key: Key::new(&bound.space, &subject)?,
                policy: &bound.policy,
                op,
            });
        }
        let verdicts = self.store.apply(self.timed(Batch::new(&checks)?)).await?;
        if verdicts.as_slice().len() != checks.len() {
            return Err(Error::new(
                ErrorKind::Other,
                "the store left a settlement without an answer",
            )
            .with_charge_unknown());
        }
        Ok(Decision::judged(&policies, verdicts, charged, false).to_report())
    }
}
