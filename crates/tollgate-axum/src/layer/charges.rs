//! How much is charged, to which policies, and when.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use http::request::Parts;
use http::{Method, response};
use tollgate_core::Store;

use crate::count_after::CountAfter;
use crate::key::KeyExtractor;
use crate::layer::{Charging, RateLimitLayer};
use crate::tier::{IntoTier, TierRule};

impl<S: Store + Clone, K: KeyExtractor, R: Clone> RateLimitLayer<S, K, R> {
    /// Takes as many units per request as `cost` says, instead of one.
    ///
    /// A request that costs nothing passes like a [skipped](Self::skip) one.
    #[must_use]
    pub fn cost(self, cost: impl Fn(&Parts) -> u64 + Send + Sync + 'static) -> Self {
        self.with(|rules| rules.cost = Some(Arc::new(cost)))
    }

    /// Lets requests of which `skip` is true pass, uncounted and without headers.
    ///
    /// Each call adds a condition; one that is true is enough.
    #[must_use]
    pub fn skip(self, skip: impl Fn(&Parts) -> bool + Send + Sync + 'static) -> Self {
        self.with(|rules| rules.skip.push(Arc::new(skip)))
    }

    /// Limits only requests of these methods. Others pass, uncounted and without headers.
    ///
    /// `HEAD` goes with `GET`: the same route answers it, with the same work.
    #[must_use]
    pub fn methods(self, methods: impl IntoIterator<Item = Method>) -> Self {
        self.with(|rules| rules.methods = Some(methods.into_iter().collect()))
    }

    /// Chooses the policies by the request: a [`Tier`](crate::Tier), or a `Result` of one.
    ///
    /// For what is known at once, such as a plan that an authentication layer has left in the request's extensions. An error
    /// is logged, and the request refused with `500 Internal Server Error`.
    ///
    /// ```
    /// use tollgate_axum::{RateLimitLayer, Tier};
    /// use tollgate_memory::{Limiter, MemoryStore, Quota};
    ///
    /// #[derive(Clone, Copy)]
    /// enum Plan { Gold, Staff }
    ///
    /// let gold = Tier::limited("1000/minute".parse::<Quota>()?);
    /// let limit = RateLimitLayer::new(Limiter::new(MemoryStore::new(), "60/minute".parse::<Quota>()?))
    ///     .tier(move |parts| match parts.extensions.get::<Plan>() {
    ///         None => Tier::standard(),
    ///         Some(Plan::Gold) => gold.clone(),
    ///         Some(Plan::Staff) => Tier::exempt(),
    ///     });
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn tier<T: IntoTier>(self, choose: impl Fn(&Parts) -> T + Send + Sync + 'static) -> Self {
        self.with(|rules| rules.tier = TierRule::known(choose))
    }

    /// Like [`tier`](Self::tier), for what has to be looked up.
    ///
    /// The closure takes from the head what it needs; its future does not borrow it. It sees the request and not the key
    /// that was found for it, so a plan that belongs to an API key is looked up by the same header.
    ///
    /// ```
    /// use http::HeaderName;
    /// use tollgate_axum::{HeaderKey, RateLimitLayer, Tier};
    /// use tollgate_memory::{Limiter, MemoryStore, Quota};
    ///
    /// const API_KEY: HeaderName = HeaderName::from_static("x-api-key");
    ///
    /// fn account_of(api_key: &str) -> Option<u64> {
    ///     (api_key == "s3cret").then_some(7)
    /// }
    ///
    /// async fn has_paid(account: Option<u64>) -> bool {
    ///     account == Some(7) // ask a database
    /// }
    ///
    /// let paid = Tier::limited("1000/minute".parse::<Quota>()?);
    /// let limit = RateLimitLayer::new(Limiter::new(MemoryStore::new(), "60/minute".parse::<Quota>()?))
    ///     .key(HeaderKey::new(API_KEY, account_of))
    ///     .tier_async(move |parts| {
    ///         let api_key = parts.headers.get(API_KEY).and_then(|value| value.to_str().ok());
    ///         let account = api_key.and_then(account_of);
    ///         let paid = paid.clone();
    ///         async move { if has_paid(account).await { paid } else { Tier::standard() } }
    ///     });
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn tier_async<F>(self, look_up: impl Fn(&Parts) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output: IntoTier> + Send + 'static,
    {
        self.with(|rules| rules.tier = TierRule::looked_up(look_up))
    }

    /// Leaves a receipt for the handler: see [`Charged`](crate::Charged).
    ///
    /// Takes the place of [`count_after`](Self::count_after), and the other way round.
    #[must_use]
    pub fn with_receipt(self) -> Self {
        self.with(|rules| rules.charging = Charging::WithReceipt)
    }

    /// Charges a request by its response: see [`CountAfter`].
    ///
    /// ```
    /// use tollgate_axum::{CountAfter, RateLimitLayer};
    /// use tollgate_memory::{Algorithm, Limiter, MemoryStore, Policy};
    ///
    /// // Five failed attempts in the 15 minutes that begin with the first; a success wipes the slate clean.
    /// let policy = Policy::new("login", Algorithm::FixedWindow, "5/15 minutes".parse()?)?;
    /// let login = RateLimitLayer::new(Limiter::new(MemoryStore::new(), policy))
    ///     .scope("login")
    ///     .count_after(CountAfter::lockout());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn count_after(self, rule: CountAfter) -> Self {
        self.with(|rules| rules.charging = Charging::After(rule))
    }

    /// Charges requests whose response `counts`: [`count_after`](Self::count_after) with [`CountAfter::when`].
    #[must_use]
    pub fn charge_when(
        self,
        counts: impl Fn(&response::Parts) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.count_after(CountAfter::when(counts))
    }

    /// Locks clients out after failures: [`count_after`](Self::count_after) with [`CountAfter::lockout`].
    #[must_use]
    pub fn lockout(self) -> Self {
        self.count_after(CountAfter::lockout())
    }

    /// Lets requests wait for their turn, up to `max_delay`, instead of answering at once.
    ///
    /// Under a leaky bucket ([`Algorithm::LeakyBucket`](tollgate_core::Algorithm::LeakyBucket)) requests then reach the
    /// service inside at the steady rate. One that would have to wait longer than `max_delay` is refused at once, and
    /// charged nothing: the bucket's queue is cut to what leaves in time, and headers tell of that shorter burst. Other
    /// algorithms have no queue and never delay.
    ///
    /// A request that is cancelled while it waits keeps its place in the queue. Waiting takes the tokio timer.
    #[must_use]
    pub fn shape(self, max_delay: Duration) -> Self {
        self.with(|rules| rules.max_delay = Some(max_delay))
    }
}
