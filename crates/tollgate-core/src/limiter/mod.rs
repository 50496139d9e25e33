//! The limiter: what an application holds and asks.

#[cfg(feature = "tokio")]
mod acquire;
mod at_once;
mod failure;
mod policies;
mod reservation;
mod shadow;

use std::sync::Arc;

#[cfg(feature = "tokio")]
pub use acquire::Acquire;
pub use failure::FailureMode;
pub use policies::Policies;
pub use reservation::{Receipt, Reservation};

use policies::BoundPolicies;

use crate::algorithm::Op;
use crate::batch::{Batch, Check, Verdicts};
use crate::clock::Clock;
use crate::cost::Cost;
use crate::decision::Decision;
use crate::error::{Error, ErrorKind, Result};
use crate::key::Key;
use crate::shared::SharedStore;
use crate::store::{InProcessStore, Store};

/// A store and the policies to enforce on it.
///
/// It holds no counters: those lie in the store, and any number of limiters over one store, in any number of
/// processes, count together when prefix, scope and policy names agree. Cloning and building one are cheap.
///
/// A subject is whatever tells one caller from another: a user's id, an address, an API key. It is never empty.
///
/// Every call is one round trip, judged at one instant: with several policies all are charged or none.
/// Dropping a call's future may leave the hit charged or not, nothing in between.
///
/// Policies in [shadow mode](crate::Policy::shadow) stand apart from that. Each is asked in one more round trip after the
/// enforced ones: to be charged if they admitted the hit, only to say what it would have done if they denied it, and not at
/// all if the store could not answer for them. Dropping the future may leave some of them uncharged.
#[derive(Clone, Debug)]
pub struct Limiter<S = SharedStore> {
    store: S,
    policies: Policies,
    failure_mode: Option<FailureMode>,
    clock: Option<Arc<dyn Clock>>,
}

impl<S: Store> Limiter<S> {
    /// A limiter that enforces `policies` on `store`: a [`Quota`](crate::Quota), a [`Policy`](crate::Policy), or
    /// [`Policies`] for several.
    pub fn new(store: S, policies: impl Into<Policies>) -> Self {
        Self {
            store,
            policies: policies.into(),
            failure_mode: None,
            clock: None,
        }
    }

    /// The same store, failure mode and clock under other policies: those of another tier, say.
    ///
    /// Clones the store's handle and nothing else.
    #[must_use]
    pub fn with_policies(&self, policies: impl Into<Policies>) -> Self
    where
        S: Clone,
    {
        Self {
            store: self.store.clone(),
            policies: policies.into(),
            failure_mode: self.failure_mode,
            clock: self.clock.clone(),
        }
    }

    /// Counts apart from limiters of every other scope.
    #[must_use]
    pub fn scope(self, scope: &str) -> Self {
        Self {
            policies: self.policies.scope(scope),
            ..self
        }
    }

    /// Counts under another prefix: for applications that share a store.
    #[must_use]
    pub fn prefix(self, prefix: &str) -> Self {
        Self {
            policies: self.policies.prefix(prefix),
            ..self
        }
    }

    /// What to answer when the store cannot. A policy's own mode goes first.
    ///
    /// Unless set, the store's stand-in judges if it has one, and otherwise the hit is admitted ([`FailureMode::Open`]).
    #[must_use]
    pub fn on_failure(self, failure_mode: FailureMode) -> Self {
        Self {
            failure_mode: Some(failure_mode),
            ..self
        }
    }

    /// Judges by `clock` instead of by the store's own: for tests and simulations.
    ///
    /// Not for production: a store shared by several machines has one clock, and they have many.
    #[must_use]
    pub fn clock(self, clock: impl Clock) -> Self {
        Self {
            clock: Some(Arc::new(clock)),
            ..self
        }
    }

    /// The store.
    pub const fn store(&self) -> &S {
        &self.store
    }

    /// The policies.
    pub const fn policies(&self) -> &Policies {
        &self.policies
    }

    /// Takes one unit for `subject`, if every policy has it.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`] for an empty subject, [`ErrorKind::Unsupported`] for what the store cannot do. The
    /// store's own trouble becomes an answer by the [`FailureMode`].
    pub async fn hit(&self, subject: impl AsRef<[u8]> + Send + Sync) -> Result<Decision<'_>> {
        self.ask(subject.as_ref(), Op::Hit(Cost::ONE)).await
    }

    /// Takes `units` for `subject`, if every policy has them: all of them or none.
    ///
    /// # Errors
    /// As [`hit`](Self::hit), and [`ErrorKind::InvalidInput`] for zero units.
    pub async fn hit_n(
        &self,
        subject: impl AsRef<[u8]> + Send + Sync,
        units: u64,
    ) -> Result<Decision<'_>> {
        self.ask(subject.as_ref(), Op::Hit(Cost::new(units)?)).await
    }

    /// Says what a hit of one unit would be answered, and changes nothing.
    ///
    /// # Errors
    /// As [`hit`](Self::hit).
    pub async fn peek(&self, subject: impl AsRef<[u8]> + Send + Sync) -> Result<Decision<'_>> {
        self.ask(subject.as_ref(), Op::Peek(Cost::ONE)).await
    }

    /// Says what a hit of `units` would be answered, and changes nothing.
    ///
    /// # Errors
    /// As [`hit_n`](Self::hit_n).
    pub async fn peek_n(
        &self,
        subject: impl AsRef<[u8]> + Send + Sync,
        units: u64,
    ) -> Result<Decision<'_>> {
        self.ask(subject.as_ref(), Op::Peek(Cost::new(units)?))
            .await
    }

    /// Forgets `subject` under every policy, as if it had never been seen. Returns whether there was anything to forget.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`] for an empty subject, and the store's own trouble: a reset that did not happen is
    /// never reported as one.
    pub async fn reset(&self, subject: impl AsRef<[u8]> + Send + Sync) -> Result<bool> {
        let subject = subject.as_ref();
        let bound = self.policies.bound();
        if let [only] = bound {
            return Ok(self.store.reset(&[Key::new(&only.space, subject)?]).await? > 0);
        }
        let keys = bound
            .iter()
            .map(|bound| Key::new(&bound.space, subject))
            .collect::<Result<Vec<_>>>()?;
        Ok(self.store.reset(&keys).await? > 0)
    }

    async fn ask(&self, subject: &[u8], op: Op) -> Result<Decision<'_>> {
        let answer = match self.policies.asked() {
            BoundPolicies::One(only) => {
                let check = only.check(subject, op)?;
                self.store.apply(self.timed(Batch::of_one(&check))).await
            }
            BoundPolicies::Together(_) => {
                let checks = self.checks(subject, op)?;
                self.store.apply(self.timed(Batch::new(&checks)?)).await
            }
            // Boxed, so that the future of limiters without shadows does not grow.
            BoundPolicies::WithShadows(_) => {
                return Box::pin(self.ask_with_shadows(subject, op)).await;
            }
        };
        self.decide(answer, op)
    }

    /// What is asked about the enforced policies, in order.
    fn checks<'a>(&'a self, subject: &'a [u8], op: Op) -> Result<Vec<Check<'a>>> {
        let enforced = self.policies.enforced();
        enforced.map(|bound| bound.check(subject, op)).collect()
    }

    fn timed<'a>(&self, batch: Batch<'a>) -> Batch<'a> {
        batch
            .at(self.clock.as_ref().map(|clock| clock.now()))
            .on_failure(self.failure_mode)
    }

    fn decide(&self, answer: Result<Verdicts>, op: Op) -> Result<Decision<'_>> {
        match counted(answer, self.policies.len()) {
            Ok(verdicts) => Ok(Decision::judged(
                &self.policies,
                verdicts,
                op.cost(),
                matches!(op, Op::Hit(_)),
            )),
            Err(error) => self.fail(error, op.cost()),
        }
    }

    fn wants_fallback(&self, mode: FailureMode) -> bool {
        let mut modes = self
            .policies
            .enforced()
            .map(|bound| bound.policy.failure_mode_or(mode));
        modes.any(|mode| mode == FailureMode::Fallback)
    }

    #[cold]
    #[inline(never)]
    fn fail(&self, error: Error, cost: Cost) -> Result<Decision<'_>> {
        if error.kind().is_callers_fault() {
            return Err(error);
        }
        let mode = self.failure_mode.unwrap_or_default();
        if self.wants_fallback(mode) && !self.store.capabilities().fallback {
            return Err(Error::new(
                ErrorKind::Unsupported,
                "the failure mode is fallback, but nothing stands in for the store; wrap it in a fallback layer",
            )
            .with_source(error));
        }
        Ok(Decision::failed(&self.policies, error, mode, cost))
    }
}

impl<S: InProcessStore> Limiter<S> {
    /// [`hit`](Self::hit) without a future.
    ///
    /// # Errors
    /// As [`hit`](Self::hit).
    #[inline]
    pub fn hit_now(&self, subject: impl AsRef<[u8]>) -> Result<Decision<'_>> {
        self.ask_now::<true>(subject.as_ref(), Cost::ONE)
    }

    /// [`hit_n`](Self::hit_n) without a future.
    ///
    /// # Errors
    /// As [`hit_n`](Self::hit_n).
    #[inline]
    pub fn hit_n_now(&self, subject: impl AsRef<[u8]>, units: u64) -> Result<Decision<'_>> {
        self.ask_now::<true>(subject.as_ref(), Cost::new(units)?)
    }

    /// [`peek`](Self::peek) without a future.
    ///
    /// # Errors
    /// As [`hit`](Self::hit).
    #[inline]
    pub fn peek_now(&self, subject: impl AsRef<[u8]>) -> Result<Decision<'_>> {
        self.ask_now::<false>(subject.as_ref(), Cost::ONE)
    }

    // Whether it charges is known when it is compiled, and only plain numbers leave it: so an ordinary hit stays in
    // registers.
    #[inline]
    fn ask_now<const CHARGES: bool>(&self, subject: &[u8], cost: Cost) -> Result<Decision<'_>> {
        if let (None, BoundPolicies::One(only)) = (&self.clock, self.policies.asked())
            && let Some(key) = Key::verbatim(&only.space, subject)
        {
            let op = if CHARGES {
                Op::Hit(cost)
            } else {
                Op::Peek(cost)
            };
            let policy = &only.policy;
            if let Some((at, verdict)) = self.store.judge_at_hand(&Check { key, policy, op }) {
                let verdicts = Verdicts::one(at, verdict);
                return Ok(Decision::judged(&self.policies, verdicts, cost, CHARGES));
            }
        }
        self.ask_in_full_now(subject, cost, CHARGES)
    }

    #[inline(never)]
    fn ask_in_full_now(&self, subject: &[u8], cost: Cost, charges: bool) -> Result<Decision<'_>> {
        let op = if charges {
            Op::Hit(cost)
        } else {
            Op::Peek(cost)
        };
        let answer = match self.policies.asked() {
            BoundPolicies::One(only) => {
                let check = only.check(subject, op)?;
                self.store.judge(&self.timed(Batch::of_one(&check)))
            }
            BoundPolicies::Together(_) => {
                let checks = self.checks(subject, op)?;
                self.store.judge(&self.timed(Batch::new(&checks)?))
            }
            BoundPolicies::WithShadows(_) => return self.ask_with_shadows_now(subject, op),
        };
        self.decide(answer, op)
    }
}

/// The store's answer, if it is one to as many checks as it was asked.
fn counted(answer: Result<Verdicts>, asked: usize) -> Result<Verdicts> {
    let verdicts = answer?;
    let answered = verdicts.as_slice().len();
    if answered == asked {
        return Ok(verdicts);
    }
    Err(miscounted(asked, answered))
}

#[cold]
fn miscounted(asked: usize, answered: usize) -> Error {
    Error::new(
        ErrorKind::Other,
        format!("{asked} checks had {answered} answers"),
    )
    .with_charge_unknown()
}
