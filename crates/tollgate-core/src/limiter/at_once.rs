//! Asking without a future where that is possible.

use crate::algorithm::Op;
use crate::batch::Batch;
use crate::cost::Cost;
use crate::decision::Decision;
use crate::error::Result;
use crate::limiter::Limiter;
use crate::limiter::policies::BoundPolicies;
use crate::store::Store;

impl<S: Store> Limiter<S> {
    /// [`hit_n`](Self::hit_n) without a future, if the store lies in this process.
    ///
    /// `None` means that nothing was done and that only [`hit_n`](Self::hit_n) can answer; so it is where policies are in
    /// shadow mode. For code that is generic over the store; where it is known to lie in the process, use `hit_n_now`.
    ///
    /// # Errors
    /// As [`hit_n`](Self::hit_n).
    pub fn hit_n_at_once(&self, subject: &[u8], cost: Cost) -> Option<Result<Decision<'_>>> {
        self.ask_at_once(subject, Op::Hit(cost)).transpose()
    }

    fn ask_at_once(&self, subject: &[u8], op: Op) -> Result<Option<Decision<'_>>> {
        let answer = match self.policies.asked() {
            BoundPolicies::One(only) => {
                let check = only.check(subject, op)?;
                self.store.apply_now(&self.timed(Batch::of_one(&check)))
            }
            BoundPolicies::Together(_) => {
                let checks = self.checks(subject, op)?;
                self.store.apply_now(&self.timed(Batch::new(&checks)?))
            }
            // It takes several calls, and the store may answer the first at once and not the next.
            BoundPolicies::WithShadows(_) => None,
        };
        answer.map(|answer| self.decide(answer, op)).transpose()
    }
}
