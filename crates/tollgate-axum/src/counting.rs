//! What is done with a counter once the response is there.

use std::error::Error as StdError;
use std::sync::Arc;

use http::response::Parts;
use tollgate_core::{Cost, Error, Limiter, Receipt, Store};

use crate::count_after::{CountAfter, Outcome};
use crate::headers::{Advertised, Reach};
use crate::key::{KeyExtractor, RequestKey};
use crate::layer::Config;
use crate::rate_limit::RateLimit;

/// A request that is under way and whose response will tell whether it counts.
#[derive(Debug)]
pub(crate) struct Counting<S> {
    pub(crate) limiter: Arc<Limiter<S>>,
    pub(crate) key: RequestKey,
    pub(crate) cost: Cost,
    /// Proof that it was charged before. Without it, either nothing was or nobody knows.
    pub(crate) receipt: Option<Receipt>,
    pub(crate) rule: CountAfter,
    pub(crate) reach: Reach,
    /// Whether the request's method only looks.
    pub(crate) is_safe: bool,
}

impl<S: Store + Clone> Counting<S> {
    /// Does what `response` asks for. Returns what is to be advertised instead of what was known before, if that changed.
    ///
    /// The store's trouble is logged and does not reach the client, whose request was served.
    pub(crate) async fn settle_up<K: KeyExtractor, R: Sync>(
        self,
        config: &Config<S, K, R>,
        response: &Parts,
    ) -> Option<Advertised> {
        let outcome = self.rule.outcome(response, self.is_safe);
        let settled = self.carry_out(config, outcome).await;
        settled.unwrap_or_else(|error| {
            let error: &dyn StdError = &error;
            tracing::warn!(error, ?outcome, "a response could not be counted");
            None
        })
    }

    async fn carry_out<K: KeyExtractor, R: Sync>(
        self,
        config: &Config<S, K, R>,
        outcome: Outcome,
    ) -> Result<Option<Advertised>, Error> {
        let Self {
            limiter,
            key,
            cost,
            receipt,
            rule,
            reach,
            is_safe: _,
        } = self;
        let decision = match outcome {
            Outcome::Charge if rule.reserves() => return Ok(None),
            Outcome::Charge => limiter.hit_n(&key, cost.get()).await?,
            Outcome::Free => {
                let Some(receipt) = receipt else {
                    return Ok(None);
                };
                limiter.settle(receipt, 0).await?;
                limiter.peek_n(&key, cost.get()).await?
            }
            Outcome::Reset => {
                limiter.reset(&key).await?;
                limiter.peek_n(&key, cost.get()).await?
            }
        };
        config.built.outage.observe(&decision);
        let limit = RateLimit::of(&decision);
        Ok(Some(config.advertise(&limit, key.subject(), reach)))
    }
}
