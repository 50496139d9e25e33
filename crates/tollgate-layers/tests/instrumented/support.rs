//! A memory store that fails on command, and what was recorded.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::future::pending;
use std::sync::{Arc, Mutex};

use metrics_util::debugging::{DebugValue, DebuggingRecorder, Snapshotter};
use tollgate_core::{
    Algorithm, Batch, Capabilities, Error, ErrorKind, InProcessStore, Key, ManualClock, Policy,
    Result, Source, Store, Verdicts,
};
use tollgate_memory::MemoryStore;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Dispatch, Event, Level, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};

pub(crate) fn memory(clock: &ManualClock) -> MemoryStore<ManualClock> {
    let builder = MemoryStore::builder().clock(clock.clone());
    builder.build().unwrap()
}

pub(crate) fn policy(name: &str, quota: &str) -> Policy {
    Policy::new(name, Algorithm::FixedWindow, quota.parse().unwrap()).unwrap()
}

/// What a store does instead of answering.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    None,
    /// It fails.
    Error(ErrorKind, &'static str),
    /// It answers in another's name.
    As(Source),
    /// It answers only the first check.
    Miscount,
    /// It never answers.
    Hang,
}

/// A memory store that fails on command. Clones share everything.
#[derive(Clone, Debug)]
pub(crate) struct Faulty {
    store: MemoryStore<ManualClock>,
    fault: Arc<Mutex<Fault>>,
    capabilities: Capabilities,
}

impl Faulty {
    pub(crate) fn new() -> Self {
        Self {
            store: memory(&ManualClock::default()),
            fault: Arc::new(Mutex::new(Fault::None)),
            capabilities: Capabilities::ALL,
        }
    }

    /// Claims to have a stand-in.
    pub(crate) fn with_stand_in(self) -> Self {
        Self {
            capabilities: Capabilities::ALL.with_fallback(true),
            ..self
        }
    }

    pub(crate) fn set(&self, fault: Fault) {
        *self.fault.lock().unwrap() = fault;
    }

    pub(crate) fn fail(&self, kind: ErrorKind) {
        self.set(Fault::Error(kind, "on command"));
    }

    fn fault(&self) -> Fault {
        *self.fault.lock().unwrap()
    }
}

impl Store for Faulty {
    async fn apply<'a>(&'a self, batch: Batch<'a>) -> Result<Verdicts> {
        if self.fault() == Fault::Hang {
            return pending().await;
        }
        self.judge(&batch)
    }

    async fn reset<'a>(&'a self, keys: &'a [Key<'a>]) -> Result<u64> {
        match self.fault() {
            Fault::Error(kind, words) => Err(Error::new(kind, words)),
            _ => self.store.reset(keys).await,
        }
    }

    fn capabilities(&self) -> Capabilities {
        self.capabilities
    }
}

impl InProcessStore for Faulty {
    fn judge(&self, batch: &Batch<'_>) -> Result<Verdicts> {
        match self.fault() {
            Fault::Error(kind, words) => Err(Error::new(kind, words).with_store("faulty")),
            Fault::As(source) => Ok(self.store.judge(batch)?.with_source(source)),
            Fault::Miscount => self.store.judge(&Batch::of_one(&batch.checks()[0])),
            Fault::None | Fault::Hang => self.store.judge(batch),
        }
    }
}

/// Runs `f` under a recorder of its own, and gives back every counter that is not zero, as `name{label=value,…}`.
pub(crate) fn counted(f: impl FnOnce()) -> BTreeMap<String, u64> {
    let recorder = DebuggingRecorder::new();
    metrics::with_local_recorder(&recorder, f);
    counters(&recorder.snapshotter())
}

/// Every counter that is not zero, and sets it back.
pub(crate) fn counters(snapshotter: &Snapshotter) -> BTreeMap<String, u64> {
    let all = snapshotter.snapshot().into_vec().into_iter();
    all.filter_map(|(key, _, _, value)| match value {
        DebugValue::Counter(count) if count > 0 => Some((spelled(key.key()), count)),
        _ => None,
    })
    .collect()
}

/// Every sample of every histogram that has any.
pub(crate) fn samples(snapshotter: &Snapshotter) -> BTreeMap<String, Vec<f64>> {
    let all = snapshotter.snapshot().into_vec().into_iter();
    all.filter_map(|(key, _, _, value)| match value {
        DebugValue::Histogram(samples) if !samples.is_empty() => {
            let samples = samples.into_iter().map(|sample| *sample).collect();
            Some((spelled(key.key()), samples))
        }
        _ => None,
    })
    .collect()
}

pub(crate) fn spelled(key: &metrics::Key) -> String {
    let labels: Vec<String> = key
        .labels()
        .map(|label| format!("{}={}", label.key(), label.value()))
        .collect();
    format!("{}{{{}}}", key.name(), labels.join(","))
}

/// What is expected of [`counted`].
pub(crate) fn expected<const N: usize>(counts: [(&str, u64); N]) -> BTreeMap<String, u64> {
    let counts = counts.into_iter();
    counts
        .map(|(name, count)| (name.to_owned(), count))
        .collect()
}

/// Everything that spans and events said, one line each: `LEVEL name field=value …`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lines(Arc<Mutex<Vec<String>>>);

impl Lines {
    /// Runs `f` with a subscriber that writes here.
    pub(crate) fn of(f: impl FnOnce()) -> Vec<String> {
        let lines = Self::default();
        tracing::dispatcher::with_default(&lines.dispatch(), f);
        lines.take()
    }

    pub(crate) fn dispatch(&self) -> Dispatch {
        Dispatch::new(tracing_subscriber::registry().with(self.clone()))
    }

    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }

    fn push(&self, level: Level, name: &str, fields: &Fields) {
        let line = format!("{level} {name}{}", fields.0);
        self.0.lock().unwrap().push(line.trim_end().to_owned());
    }
}

impl<S: Subscriber> Layer<S> for Lines {
    fn on_new_span(&self, attributes: &Attributes<'_>, _: &Id, _: Context<'_, S>) {
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        let metadata = attributes.metadata();
        self.push(*metadata.level(), metadata.name(), &fields);
    }

    fn on_record(&self, _: &Id, values: &Record<'_>, _: Context<'_, S>) {
        let mut fields = Fields::default();
        values.record(&mut fields);
        self.push(Level::DEBUG, "recorded", &fields);
    }

    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        self.push(*event.metadata().level(), "event", &fields);
    }
}

#[derive(Default)]
struct Fields(String);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        write!(self.0, " {field}={value:?}").unwrap();
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        write!(self.0, " {field}={value}").unwrap();
    }
}

/// The lines of one level.
pub(crate) fn at(level: Level, lines: &[String]) -> Vec<&str> {
    let prefix = format!("{level} event");
    let lines = lines.iter().map(String::as_str);
    lines.filter(|line| line.starts_with(&prefix)).collect()
}
