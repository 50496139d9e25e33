//! What a case has in its hands: a store, and a part of the key space that is its own.

use std::sync::Arc;
use std::time::Duration;

use tollgate_core::{
    Algorithm, Batch, Capabilities, Check, Key, Op, Policy, SharedStore, Store, Timestamp, Verdicts,
};

use crate::client::{Backend, Client};
use crate::counter::{Answer, Counter, policy};
use crate::offer::{Held, Offer, Offered, Outage, Plant};
use crate::options::Options;
use crate::outcome::{Outcome, Stop, ensure, ensure_eq};

/// Where virtual time starts: 2001-09-09T01:46:40Z, 10^9 seconds after the epoch.
pub(crate) const START: u64 = 1_000_000_000_000_000;

/// What a case has in its hands: a store, and a part of the key space that is its own.
#[derive(Clone)]
pub(crate) struct TestBed {
    backend: Arc<dyn Backend>,
    client: Arc<dyn Client>,
    store: SharedStore,
    prefix: String,
    pub(crate) options: Options,
}

impl TestBed {
    pub(crate) async fn new(backend: Arc<dyn Backend>, options: Options) -> Outcome<Self> {
        let client = backend.client().await?;
        Ok(Self::over(backend, client, options))
    }

    fn over(backend: Arc<dyn Backend>, client: Arc<dyn Client>, options: Options) -> Self {
        Self {
            backend,
            store: client.by_future(),
            client,
            prefix: random_prefix(),
            options,
        }
    }

    /// The same store with keys that nobody has used.
    pub(crate) fn untouched(&self) -> Self {
        Self {
            prefix: random_prefix(),
            ..self.clone()
        }
    }

    /// The same store, answering without a future where it can.
    pub(crate) fn at_once(&self) -> Self {
        Self {
            store: self.client.at_once(),
            ..self.clone()
        }
    }

    pub(crate) const fn store(&self) -> &SharedStore {
        &self.store
    }

    pub(crate) fn prefix(&self) -> &str {
        &self.prefix
    }

    pub(crate) fn capabilities(&self) -> Capabilities {
        self.store.capabilities()
    }

    /// A counter for `subject` under a policy of `algorithm` and `quota`.
    pub(crate) fn counter(&self, subject: &str, algorithm: Algorithm, quota: &str) -> Counter {
        self.scoped("", subject, policy(algorithm, quota))
    }

    /// A counter for `subject` in `scope`.
    pub(crate) fn scoped(&self, scope: &str, subject: impl AsRef<[u8]>, policy: Policy) -> Counter {
        Counter::new(&self.prefix, scope, policy, subject.as_ref())
    }

    /// Judges by the store's own clock.
    pub(crate) const fn now(&self) -> Moment<'_> {
        Moment {
            bed: self,
            at: None,
        }
    }

    /// Judges at `after` the start of virtual time.
    pub(crate) fn at(&self, after: Duration) -> Moment<'_> {
        self.at_instant(Timestamp::saturating_from_micros(START) + after)
    }

    pub(crate) const fn at_instant(&self, at: Timestamp) -> Moment<'_> {
        Moment {
            bed: self,
            at: Some(at),
        }
    }

    /// Forgets `counters` and says how many there were.
    pub(crate) async fn reset<'a>(
        &self,
        counters: impl IntoIterator<Item = &'a Counter>,
    ) -> Outcome<u64> {
        let keys: Vec<Key<'_>> = counters.into_iter().map(Counter::key).collect();
        Ok(self.store.reset(&keys).await?)
    }

    /// Leaves the case out unless the store judges at instants that the caller names.
    pub(crate) fn needs_virtual_time(&self) -> Outcome {
        if self.capabilities().virtual_time {
            return Ok(());
        }
        Err(Stop::LeftOut(
            "the store lacks the capability `virtual_time`".to_owned(),
        ))
    }

    /// Leaves the case out unless a batch may hold any keys.
    pub(crate) fn needs_any_keys(&self) -> Outcome {
        if self.capabilities().atomic_any_keys {
            return Ok(());
        }
        Err(Stop::LeftOut(
            "the store lacks the capability `atomic_any_keys`".to_owned(),
        ))
    }

    /// Whether the store answers without a future, which only one in this process can.
    pub(crate) fn answers_at_once(&self) -> bool {
        let probe = self.counter("probe", Algorithm::TokenBucket, "1/s");
        let check = probe.peek(1);
        self.client
            .at_once()
            .apply_now(&Batch::of_one(&check))
            .is_some()
    }

    /// Another client of the same backend, on the same keys.
    pub(crate) async fn peer(&self) -> Outcome<Self> {
        let client = self.outside("peer", self.client.peer().await)?;
        Ok(Self {
            prefix: self.prefix.clone(),
            ..Self::over(Arc::clone(&self.backend), client, self.options.clone())
        })
    }

    pub(crate) async fn backend_time(&self) -> Outcome<Timestamp> {
        self.client.backend_time().await?.or_stop("backend_time")
    }

    pub(crate) async fn held(&self, counter: &Counter) -> Outcome<Held> {
        self.client.held(&counter.key()).await?.or_stop("held")
    }

    pub(crate) async fn lose_expiry(&self, counter: &Counter) -> Outcome {
        self.outside("lose_expiry", self.client.lose_expiry(&counter.key()).await)
    }

    pub(crate) async fn plant(&self, counter: &Counter, plant: Plant<'_>) -> Outcome {
        self.outside("plant", self.client.plant(&counter.key(), plant).await)
    }

    /// A store of its own whose backend can be taken away.
    pub(crate) async fn outage(&self) -> Outcome<(Self, Outage<()>)> {
        let outage = self.outside("outage", self.backend.outage().await)?;
        let bed = Self::over(
            Arc::clone(&self.backend),
            Arc::clone(&outage.store),
            self.options.clone(),
        );
        Ok((bed, outage.map(|_| ())))
    }

    /// A hook into what lies outside this process, which a store inside of it does not have.
    fn outside<T>(&self, hook: &str, offered: Offered<T>) -> Outcome<T> {
        match offered? {
            Offer::NotOffered if self.answers_at_once() => Err(Stop::NotApplicable(
                "the store lies in this process".to_owned(),
            )),
            offer => offer.or_stop(hook),
        }
    }
}

/// An instant to ask the store at: a named one, or whatever the store's clock says.
#[derive(Clone, Copy)]
pub(crate) struct Moment<'a> {
    bed: &'a TestBed,
    at: Option<Timestamp>,
}

impl Moment<'_> {
    pub(crate) async fn hit(&self, counter: &Counter, units: u64) -> Outcome<Answer> {
        self.one(counter.hit(units)).await
    }

    pub(crate) async fn peek(&self, counter: &Counter, units: u64) -> Outcome<Answer> {
        self.one(counter.peek(units)).await
    }

    /// Carries out `settlement`, which [`Answer::settled_at`] made.
    pub(crate) async fn settle(&self, counter: &Counter, settlement: Op) -> Outcome<Answer> {
        self.one(counter.check(settlement)).await
    }

    async fn one(&self, check: Check<'_>) -> Outcome<Answer> {
        let batch = Batch::of_one(&check).at(self.at);
        let verdicts = self.bed.store.apply(batch).await?;
        Ok(answers(&batch, &verdicts)?.remove(0))
    }

    /// Asks all of `checks` as one batch.
    pub(crate) async fn batch(&self, checks: &[Check<'_>]) -> Outcome<Vec<Answer>> {
        let batch = Batch::new(checks)?.at(self.at);
        let verdicts = self.bed.store.apply(batch).await?;
        answers(&batch, &verdicts)
    }
}

/// The answers to `batch`, held to what is true of every answer.
fn answers(batch: &Batch<'_>, verdicts: &Verdicts) -> Outcome<Vec<Answer>> {
    let checks = batch.checks();
    ensure_eq!(
        verdicts.as_slice().len(),
        checks.len(),
        "every check has one answer"
    );
    if let Some(named) = batch.instant() {
        ensure_eq!(
            verdicts.at(),
            named,
            "the answer says it was judged at the named instant"
        );
    }
    let charged = checks
        .iter()
        .zip(verdicts.as_slice())
        .all(|(check, verdict)| !matches!(check.op, Op::Hit(_)) || verdict.is_allowed());
    let mut answers = Vec::with_capacity(checks.len());
    for (check, verdict) in checks.iter().zip(verdicts.as_slice()) {
        let charged = charged && matches!(check.op, Op::Hit(_));
        let answer = Answer::new(check, *verdict, verdicts.at(), verdicts.source(), charged);
        ensure!(
            answer.remaining <= answer.limit,
            "no answer leaves more than the limit, but it was {answer}"
        );
        ensure!(
            answer.allowed || answer.retry_after != Some(Duration::ZERO),
            "what is denied cannot be admitted at this very instant, but it was {answer}"
        );
        answers.push(answer);
    }
    Ok(answers)
}

fn random_prefix() -> String {
    format!("conformance-{:016x}", fastrand::u64(..))
}
