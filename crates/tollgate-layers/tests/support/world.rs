//! What the world hears: events as lines of text, and metrics.

use std::io::{self, Write};
use std::sync::Arc;

use metrics::LocalRecorderGuard;
use metrics_util::debugging::{DebugValue, DebuggingRecorder, Snapshotter};
use parking_lot::Mutex;
use tracing::subscriber::DefaultGuard;

/// The events of this thread, one line each.
#[derive(Debug)]
pub struct Events {
    written: Written,
    _guard: DefaultGuard,
}

#[derive(Clone, Debug, Default)]
struct Written(Arc<Mutex<Vec<u8>>>);

impl Write for Written {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Events {
    /// Listens until it is dropped.
    pub fn listen() -> Self {
        let written = Written::default();
        let into = written.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_max_level(tracing::Level::DEBUG)
            .with_ansi(false)
            .without_time()
            .with_writer(move || into.clone())
            .finish();
        Self {
            written,
            _guard: tracing::subscriber::set_default(subscriber),
        }
    }

    /// The lines of `level` so far, such as `WARN`.
    pub fn of(&self, level: &str) -> Vec<String> {
        let written = self.written.0.lock();
        let text = String::from_utf8_lossy(&written);
        let lines = text
            .lines()
            .filter(|line| line.trim_start().starts_with(level));
        lines.map(str::to_owned).collect()
    }
}

/// The metrics of this thread.
pub struct Metrics {
    snapshotter: Snapshotter,
    _guard: LocalRecorderGuard<'static>,
}

impl Metrics {
    /// Records until it is dropped.
    pub fn record() -> Self {
        let recorder = DebuggingRecorder::new();
        let snapshotter = recorder.snapshotter();
        // The guard borrows the recorder; a test's end is the program's end.
        let guard = metrics::set_default_local_recorder(Box::leak(Box::new(recorder)));
        Self {
            snapshotter,
            _guard: guard,
        }
    }

    /// What has become of a counter (since the last look) or a gauge, with its labels as `name=value`.
    pub fn look(&self, name: &str) -> Vec<(String, DebugValue)> {
        let all = self.snapshotter.snapshot().into_vec();
        let named = all.into_iter().filter(|(key, ..)| key.key().name() == name);
        named
            .map(|(key, _, _, value)| {
                let labels: Vec<_> = key
                    .key()
                    .labels()
                    .map(|label| format!("{}={}", label.key(), label.value()))
                    .collect();
                (labels.join(","), value)
            })
            .collect()
    }
}
