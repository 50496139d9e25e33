//! Metrics and events of a store.

mod call;
mod health;
mod labels;
mod log;
mod memory;
mod meters;
mod names;
mod recorder;
mod subjects;
mod table;
mod watch;

use std::sync::Arc;
use std::time::Duration;

use quanta::Instant;
use tollgate_core::{
    Batch, Capabilities, Check, InProcessStore, Key, Result, Store, Timestamp, Verdict, Verdicts,
};
use tracing::Instrument as _;

use labels::Verb;
pub use memory::observe_memory;
pub use subjects::SubjectLogging;
use watch::{Settings, Watch};

/// A store whose calls are counted, timed and logged.
///
/// Counters and histograms go to the recorder of the [`metrics`] facade, spans and events to [`tracing`]. What a call is
/// answered is never changed.
///
/// # Metrics
///
/// | name | type | labels | meaning |
/// |---|---|---|---|
/// | `tollgate_requests_total` | counter | `store`, `policy`, `outcome` | hits, once for each of their policies, by what became of them |
/// | `tollgate_near_limit_total` | counter | `store`, `policy` | admitted hits that left less than a fifth of the policy's limit |
/// | `tollgate_shadow_denied_total` | counter | `store`, `policy` | hits that a policy in shadow mode would have denied |
/// | `tollgate_degraded_total` | counter | `store`, `policy`, `mode` | hits answered without the store: a stand-in judged (`fallback`), or nobody did and the limiter admits (`open`) or denies (`closed`) |
/// | `tollgate_answers_total` | counter | `store`, `source` | hits, peeks and settlements by who answered: `store`, `native_counter`, `deny_cache`, `fallback` |
/// | `tollgate_errors_total` | counter | `store`, `kind` | calls that had no answer, by [`ErrorKind`](tollgate_core::ErrorKind): `timeout`, `unavailable` … |
/// | `tollgate_call_duration_seconds` | histogram | `store`, `verb` | how long the store took for a `hit`, `peek`, `settle` or `reset`, answered or failed |
/// | `tollgate_calls_abandoned_total` | counter | `store`, `verb` | calls whose future was dropped before there was an answer, as a timeout around this store does |
///
/// An `outcome` is one of
///
/// | outcome | the policy |
/// |---|---|
/// | `allowed` | admitted the hit, and was charged |
/// | `uncharged` | would have admitted it, but another policy of the same limiter denied |
/// | `denied` | denied it; it will fit later |
/// | `never` | denied it; it costs more than can ever fit |
/// | `shadow_denied` | is in shadow mode and would have denied it |
/// | `error` | was not asked: the store failed |
///
/// So the number of hits under a policy is the sum over its outcomes, and peeks are not among them.
///
/// No label ever holds a subject. The scope is a label only if [`label_scopes`](Self::label_scopes) asks for it. At most
/// 256 policies (or pairs of scope and policy) are told apart; those that come after are counted together as `(other)`.
///
/// # The recorder
///
/// Handles are fetched at the first call that needs them and then kept: a hit looks nothing up in a registry and
/// allocates nothing. While no recorder is installed nothing is kept, so it may be installed after the first call; what
/// happened before is not counted. A handle stays with the recorder it came from. Two things follow: an exporter must
/// not throw out idle metrics (`idle_timeout` of the Prometheus exporter), or else it loses what comes after; and under
/// `metrics::with_local_recorder`, which is for tests, each test makes an `Instrumented` of its own. A local recorder
/// without a size of its own is taken for none.
///
/// # Time
///
/// Calls answered by a future are timed. Those answered in this process ([`Store::apply_now`], [`InProcessStore`]) are
/// not, unless [`time_in_process`](Self::time_in_process) asks for it: reading a clock twice costs about as much as the
/// hit itself, and most exporters keep every sample until they are asked.
///
/// # Spans and events
///
/// | level | what | when |
/// |---|---|---|
/// | error | an error that does not pass by itself: `refused`, `corrupt`, `other` | once for each kind, until the store has recovered |
/// | warn | the store does not answer | once, at the first answer given without it |
/// | info | the store answers again, how long it was away and how many answers were degraded | once |
/// | debug | a hit was denied | only after [`log_denials`](Self::log_denials) |
/// | debug | a span `store_call` around each call, with its verb, policies, outcome and elapsed time | where a subscriber wants it |
///
/// The store has recovered once it has answered for a second without a failure in between
/// ([`recovered_after`](Self::recovered_after)). So a store that fails every other call is one outage, not thousands.
///
/// Subjects stand in events only after [`log_subjects`](Self::log_subjects). An error's words are left out where they
/// may name a subject that was not asked for.
///
/// # Where it stands
///
/// Around everything it shows what callers see, degraded answers included. Inside of a timeout, breaker or fallback it
/// shows the store alone. Both at once are fine, under different names.
///
/// ```
/// use tollgate_layers::Instrumented;
/// use tollgate_memory::{Limiter, MemoryStore, Quota};
///
/// let store = Instrumented::new(MemoryStore::new()).name("memory").log_denials(true);
/// let limiter = Limiter::new(store, Quota::per_minute(2));
/// assert!(limiter.hit_now("user:42")?.is_allowed());
/// # Ok::<(), tollgate_memory::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Instrumented<S> {
    store: S,
    watch: Arc<Watch>,
}

impl<S: Store> Instrumented<S> {
    /// Counts, times and logs the calls of `store`, which is named `store` unless [`name`](Self::name) says otherwise.
    #[must_use]
    pub fn new(store: S) -> Self {
        let settings = Settings {
            name: crate::DEFAULT_NAME,
            label_scopes: false,
            time_in_process: false,
            log_denials: false,
            subjects: None,
            steady: Duration::from_secs(1),
        };
        Self {
            store,
            watch: Arc::new(Watch::new(settings)),
        }
    }

    /// Names the store in metrics and events. Two stores of one name are counted together.
    #[must_use]
    pub fn name(self, name: &'static str) -> Self {
        self.with(|settings| settings.name = name)
    }

    /// Gives every metric of a policy the label `scope` as well.
    ///
    /// For scopes of which there are few: each one has metrics of its own.
    #[must_use]
    pub fn label_scopes(self, label_scopes: bool) -> Self {
        self.with(|settings| settings.label_scopes = label_scopes)
    }

    /// Times calls that are answered in this process, too.
    #[must_use]
    pub fn time_in_process(self, time_in_process: bool) -> Self {
        self.with(|settings| settings.time_in_process = time_in_process)
    }

    /// Logs every denied hit at debug level: its policy, scope and when to try again.
    #[must_use]
    pub fn log_denials(self, log_denials: bool) -> Self {
        self.with(|settings| settings.log_denials = log_denials)
    }

    /// Shows the subject in the events of [`log_denials`](Self::log_denials).
    ///
    /// [`SubjectLogging::Verbatim`] also shows the words of errors that name one.
    #[must_use]
    pub fn log_subjects(self, how: SubjectLogging) -> Self {
        self.with(|settings| settings.subjects = Some(how))
    }

    /// How long the store has to answer without a failure in between until it counts as recovered; a second unless set.
    ///
    /// It affects events only. With zero, each failure after a good answer begins an outage of its own, so that a store
    /// which fails now and then writes many events.
    #[must_use]
    pub fn recovered_after(self, steady: Duration) -> Self {
        self.with(|settings| settings.steady = steady)
    }

    /// The store inside.
    pub const fn inner(&self) -> &S {
        &self.store
    }

    /// The same store, watched anew with other settings.
    fn with(self, change: impl FnOnce(&mut Settings)) -> Self {
        let mut settings = self.watch.settings;
        change(&mut settings);
        Self {
            store: self.store,
            watch: Arc::new(Watch::new(settings)),
        }
    }

    fn note_in_process(
        &self,
        batch: &Batch<'_>,
        answer: &Result<Verdicts>,
        started: Option<Instant>,
    ) {
        let outcome = self.watch.judged(batch, answer, self.store.capabilities());
        if let Some(started) = started {
            self.watch
                .took_in_process(batch, outcome, started.elapsed());
        }
    }
}

impl<S: Store> Store for Instrumented<S> {
    async fn apply<'a>(&'a self, batch: Batch<'a>) -> Result<Verdicts> {
        let call = self.watch.begin(Verb::of(&batch), batch.checks());
        let answer = self
            .store
            .apply(batch)
            .instrument(call.span().clone())
            .await;
        let outcome = self
            .watch
            .judged(&batch, &answer, self.store.capabilities());
        call.end(outcome);
        answer
    }

    async fn reset<'a>(&'a self, keys: &'a [Key<'a>]) -> Result<u64> {
        let call = self.watch.begin(Verb::Reset, &[]);
        let answer = self.store.reset(keys).instrument(call.span().clone()).await;
        let outcome = self.watch.reset(keys, &answer);
        call.end(outcome);
        answer
    }

    fn capabilities(&self) -> Capabilities {
        self.store.capabilities()
    }

    fn apply_now(&self, batch: &Batch<'_>) -> Option<Result<Verdicts>> {
        let started = self.watch.start_in_process();
        let answer = self.store.apply_now(batch)?;
        self.note_in_process(batch, &answer, started);
        Some(answer)
    }
}

impl<S: InProcessStore> InProcessStore for Instrumented<S> {
    fn judge(&self, batch: &Batch<'_>) -> Result<Verdicts> {
        let started = self.watch.start_in_process();
        let answer = self.store.judge(batch);
        self.note_in_process(batch, &answer, started);
        answer
    }

    #[inline]
    fn judge_at_hand(&self, check: &Check<'_>) -> Option<(Timestamp, Verdict)> {
        // Asked the long way, the store is asked for the same by `judge`.
        if self.watch.in_detail() {
            return None;
        }
        let (at, verdict) = self.store.judge_at_hand(check)?;
        self.watch.at_hand(check, at, verdict);
        Some((at, verdict))
    }
}
