//! Whether a request may go on.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use http::Method;
use http::request::Parts;
use tollgate_core::{Cost, Decision, Error, Limiter, Store};

use crate::charged;
use crate::count_after::CountAfter;
use crate::counting::Counting;
use crate::denial::Denial;
use crate::headers::{Advertised, Reach};
use crate::key::{KeyExtractor, KeyResult, RequestKey};
use crate::layer::{Charging, Config, MissingKey};
use crate::outage::log_shadows;
use crate::rate_limit::RateLimit;
use crate::refusal::Refusal;
use crate::tier::{Tier, TierKind, TierResult};

/// Whether a request may go on.
#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "most requests are admitted, and a box would be an allocation for each"
)]
pub(crate) enum Admission<S> {
    /// It is not limited at all.
    Exempt,
    /// It may.
    Admitted(Pass<S>),
    /// It may not.
    Refused(Box<Refusal>),
}

/// What is left to do for a request that may go on.
#[derive(Debug)]
pub(crate) struct Pass<S> {
    /// What its response advertises.
    pub(crate) advertised: Advertised,
    /// How long it waits before it goes on.
    pub(crate) delay: Duration,
    /// What its response is asked.
    pub(crate) counting: Option<Box<Counting<S>>>,
}

impl<S> Pass<S> {
    /// Whether it goes on at once, and nothing follows but headers.
    pub(crate) const fn is_plain(&self) -> bool {
        self.delay.is_zero() && self.counting.is_none()
    }
}

impl<S> From<Refusal> for Admission<S> {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(Box::new(refusal))
    }
}

/// How far a request came without a future.
#[expect(
    clippy::large_enum_variant,
    reason = "most requests are judged at once, and a box would be an allocation for each"
)]
pub(crate) enum Start<S> {
    /// All the way.
    Judged(Admission<S>),
    /// The limiter is next.
    Known(Charge<S>),
    /// The key is next, or the tier if it is not there yet.
    Unknown {
        cost: Cost,
        tier: Option<TierResult>,
    },
}

/// Who is charged, how much, and where.
pub(crate) struct Charge<S> {
    limiter: Arc<Limiter<S>>,
    key: RequestKey,
    cost: Cost,
}

type Found<T, S> = ControlFlow<Admission<S>, T>;

impl<S: Store + Clone, K: KeyExtractor, R: Sync> Config<S, K, R> {
    /// Goes as far as it is possible without a future. Whatever the application told is asked once.
    pub(crate) fn begin(&self, parts: &mut Parts) -> Start<S> {
        let Some(cost) = self.cost_of(parts) else {
            return Start::Judged(Admission::Exempt);
        };
        let Some(tier) = self.rules.tier.tier_now(parts) else {
            return Start::Unknown { cost, tier: None };
        };
        let Some(key) = self.key.extract_now(parts) else {
            let tier = Some(tier);
            return Start::Unknown { cost, tier };
        };
        let charge = match self.charge(tier, key, cost, parts) {
            ControlFlow::Continue(charge) => charge,
            ControlFlow::Break(admission) => return Start::Judged(admission),
        };
        if !matches!(self.rules.charging, Charging::Before) {
            return Start::Known(charge);
        }
        match charge
            .limiter
            .hit_n_at_once(charge.key.subject(), charge.cost)
        {
            Some(Ok(decision)) => Start::Judged(self.conclude(&decision, &charge, parts)),
            Some(Err(error)) => Start::Judged(Refusal::unanswered(&error).into()),
            None => Start::Known(charge),
        }
    }

    /// Goes the rest of the way.
    pub(crate) async fn finish(&self, start: Start<S>, parts: &mut Parts) -> Admission<S> {
        let charge = match start {
            Start::Judged(admission) => return admission,
            Start::Known(charge) => charge,
            Start::Unknown { cost, tier } => {
                let tier = match tier {
                    Some(tier) => tier,
                    None => self.rules.tier.tier(parts).await,
                };
                let key = self.key.extract(parts).await;
                match self.charge(tier, key, cost, parts) {
                    ControlFlow::Continue(charge) => charge,
                    ControlFlow::Break(admission) => return admission,
                }
            }
        };
        let asked = match &self.rules.charging {
            Charging::Before => self.hit(&charge, parts).await,
            Charging::WithReceipt => self.reserve(&charge, parts).await,
            Charging::After(rule) => self.hold(charge, rule, parts).await,
        };
        asked.unwrap_or_else(|error| Refusal::unanswered(&error).into())
    }

    async fn hit(&self, charge: &Charge<S>, parts: &mut Parts) -> Result<Admission<S>, Error> {
        let subject = charge.key.subject();
        let decision = charge.limiter.hit_n(subject, charge.cost.get()).await?;
        Ok(self.conclude(&decision, charge, parts))
    }

    async fn reserve(&self, charge: &Charge<S>, parts: &mut Parts) -> Result<Admission<S>, Error> {
        let subject = charge.key.subject();
        let reservation = charge.limiter.reserve(subject, charge.cost.get()).await?;
        let admission = self.conclude(reservation.decision(), charge, parts);
        if matches!(admission, Admission::Admitted(_)) {
            let receipt = reservation.into_receipt();
            charged::leave(receipt, Arc::clone(&charge.limiter), parts);
        }
        Ok(admission)
    }

    /// Makes sure that there is room, for a request whose response will tell whether it counts.
    async fn hold(
        &self,
        charge: Charge<S>,
        rule: &CountAfter,
        parts: &mut Parts,
    ) -> Result<Admission<S>, Error> {
        let Charge { limiter, key, cost } = &charge;
        let reach = Reach::of(RateLimit::is_in(parts));
        let (admission, receipt) = if rule.reserves() {
            let reservation = limiter.reserve(key, cost.get()).await?;
            let admission = self.conclude(reservation.decision(), &charge, parts);
            (admission, reservation.into_receipt())
        } else {
            let decision = limiter.peek_n(key, cost.get()).await?;
            (self.conclude(&decision, &charge, parts), None)
        };
        Ok(match admission {
            Admission::Admitted(pass) => Admission::Admitted(Pass {
                counting: Some(Box::new(Counting {
                    limiter: charge.limiter,
                    key: charge.key,
                    cost: charge.cost,
                    receipt,
                    rule: rule.clone(),
                    reach,
                    is_safe: parts.method.is_safe(),
                })),
                ..pass
            }),
            admission => admission,
        })
    }

    /// What the request takes; `None` if it is exempt.
    fn cost_of(&self, parts: &Parts) -> Option<Cost> {
        let rules = &self.rules;
        let methods = rules.methods.as_deref();
        if methods.is_some_and(|methods| !names(methods, &parts.method)) {
            return None;
        }
        if rules.skip.iter().any(|skip| skip(parts)) {
            return None;
        }
        match &rules.cost {
            None => Some(Cost::ONE),
            Some(cost) => Cost::new(cost(parts)).ok(),
        }
    }

    fn charge(
        &self,
        tier: TierResult,
        key: KeyResult,
        cost: Cost,
        parts: &Parts,
    ) -> Found<Charge<S>, S> {
        let limiter = self.limiter(tier, parts)?;
        let key = self.identity(key)?;
        ControlFlow::Continue(Charge { limiter, key, cost })
    }

    fn limiter(&self, tier: TierResult, parts: &Parts) -> Found<Arc<Limiter<S>>, S> {
        let limiters = &self.built.limiters;
        ControlFlow::Continue(match tier {
            Ok(Tier(TierKind::Own)) => limiters.own(&self.origin(), parts),
            Ok(Tier(TierKind::Limited(policies))) => {
                limiters.of_tier(&self.origin(), &policies, parts)
            }
            Ok(Tier(TierKind::Exempt)) => return ControlFlow::Break(Admission::Exempt),
            Err(error) => {
                return ControlFlow::Break(Refusal::unknown_tier(error.as_ref()).into());
            }
        })
    }

    fn identity(&self, found: KeyResult) -> Found<RequestKey, S> {
        match found {
            Ok(Some(key)) => ControlFlow::Continue(key),
            Ok(None) => ControlFlow::Break(match self.rules.missing_key {
                MissingKey::Reject => Refusal::no_identity().into(),
                MissingKey::Skip => Admission::Exempt,
            }),
            Err(error) => ControlFlow::Break(Refusal::unknown_identity(&error).into()),
        }
    }

    fn conclude(
        &self,
        decision: &Decision<'_>,
        charge: &Charge<S>,
        parts: &mut Parts,
    ) -> Admission<S> {
        self.built.outage.observe(decision);
        log_shadows(decision, charge.limiter.policies().scope_name());
        let limit = RateLimit::of(decision);
        let reach = Reach::of(RateLimit::is_in(parts));
        let advertised = self.advertise(&limit, charge.key.subject(), reach);
        if let Some(denial) = Denial::of(decision) {
            return Refusal::denied(denial, limit, advertised).into();
        }
        limit.leave(parts);
        let delay = match self.rules.max_delay {
            Some(_) => decision.delay(),
            None => Duration::ZERO,
        };
        Admission::Admitted(Pass {
            advertised,
            delay,
            counting: None,
        })
    }

    /// What the response says.
    pub(crate) fn advertise(&self, limit: &RateLimit, subject: &[u8], reach: Reach) -> Advertised {
        Advertised::of(limit.policies(), &self.rules.headers, subject, reach)
    }
}

/// Whether `method` is one of `methods`. A route for `GET` answers `HEAD` with the same work.
fn names(methods: &[Method], method: &Method) -> bool {
    methods.contains(method) || (method == Method::HEAD && methods.contains(&Method::GET))
}
