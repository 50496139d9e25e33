//! Tiers: policies that depend on the request.

use std::error::Error;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use http::request::Parts;
use tollgate_core::Policies;

/// The policies that hold for one request.
///
/// Build each tier once and clone it: clones share what the layer builds of it. A tier built anew for each request works,
/// and costs that work each time.
///
/// Two tiers whose policies agree in prefix, scope and names count together, so a client that is moved to another tier
/// keeps what it has used. Give the policies names of their own where that is not wanted.
#[derive(Clone, Debug)]
pub struct Tier(pub(crate) TierKind);

#[derive(Clone, Debug)]
pub(crate) enum TierKind {
    Own,
    Limited(Arc<Policies>),
    Exempt,
}

impl Tier {
    /// The policies of the layer's own limiter: for those who have no tier.
    #[must_use]
    pub const fn standard() -> Self {
        Self(TierKind::Own)
    }

    /// These policies, in the place of the limiter's own. Store, failure mode and clock stay, and the prefix too unless
    /// the policies bring one.
    #[must_use]
    pub fn limited(policies: impl Into<Policies>) -> Self {
        Self(TierKind::Limited(Arc::new(policies.into())))
    }

    /// No limit: the request passes, uncounted and without headers.
    #[must_use]
    pub const fn exempt() -> Self {
        Self(TierKind::Exempt)
    }
}

/// What the choice of a tier may return: a [`Tier`], or a `Result` of one.
pub trait IntoTier {
    /// The tier.
    ///
    /// # Errors
    /// Why there is none to be found.
    fn into_tier(self) -> TierResult;
}

/// A tier, or why there is none to be found.
pub type TierResult = Result<Tier, Box<dyn Error + Send + Sync>>;

impl IntoTier for Tier {
    fn into_tier(self) -> TierResult {
        Ok(self)
    }
}

impl<E: Into<Box<dyn Error + Send + Sync>>> IntoTier for Result<Tier, E> {
    fn into_tier(self) -> TierResult {
        self.map_err(Into::into)
    }
}

type TierFuture = Pin<Box<dyn Future<Output = TierResult> + Send>>;

/// How the tier of a request is found.
#[derive(Clone, Default)]
pub(crate) enum TierRule {
    /// All requests are in one.
    #[default]
    Same,
    /// It is known at once.
    Known(Arc<dyn Fn(&Parts) -> TierResult + Send + Sync>),
    /// It has to be looked up.
    LookedUp(Arc<dyn Fn(&Parts) -> TierFuture + Send + Sync>),
}

impl TierRule {
    pub(crate) fn known<T: IntoTier>(choose: impl Fn(&Parts) -> T + Send + Sync + 'static) -> Self {
        Self::Known(Arc::new(move |parts| choose(parts).into_tier()))
    }

    pub(crate) fn looked_up<F>(look_up: impl Fn(&Parts) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output: IntoTier> + Send + 'static,
    {
        Self::LookedUp(Arc::new(move |parts| {
            let found = look_up(parts);
            Box::pin(async move { found.await.into_tier() })
        }))
    }

    /// The tier, if it is known at once.
    pub(crate) fn tier_now(&self, parts: &Parts) -> Option<TierResult> {
        match self {
            Self::Same => Some(Ok(Tier::standard())),
            Self::Known(choose) => Some(choose(parts)),
            Self::LookedUp(_) => None,
        }
    }

    pub(crate) async fn tier(&self, parts: &Parts) -> TierResult {
        match self {
            Self::Same => Ok(Tier::standard()),
            Self::Known(choose) => choose(parts),
            Self::LookedUp(look_up) => look_up(parts).await,
        }
    }
}

impl fmt::Debug for TierRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Same => "Same",
            Self::Known(_) => "Known",
            Self::LookedUp(_) => "LookedUp",
        })
    }
}
