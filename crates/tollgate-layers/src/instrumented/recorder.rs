//! What is asked of the recorder of the `metrics` facade: whether there is one, and for handles.

use metrics::{Counter, Histogram, Key, Label, Level, Metadata, Recorder};

const METADATA: Metadata<'static> =
    Metadata::new("tollgate_layers", Level::INFO, Some(module_path!()));

/// Runs `f` with the recorder in force on this thread; `None` if there is none.
pub(super) fn with_installed<T>(f: impl FnOnce(&dyn Recorder) -> T) -> Option<T> {
    metrics::with_recorder(|recorder| is_installed(recorder).then(|| f(recorder)))
}

/// Whether `recorder` is somebody's, and not the one that stands in until there is one.
///
/// The facade does not tell, but its stand-in has no size and lies at a place of its own. A recorder without a size that
/// was installed is boxed, and the address of such a box is its alignment.
fn is_installed(recorder: &dyn Recorder) -> bool {
    size_of_val(recorder) != 0 || std::ptr::from_ref(recorder).addr() == align_of_val(recorder)
}

pub(super) type Labels<'a> = [(&'static str, &'a str)];

pub(super) fn counter(recorder: &dyn Recorder, name: &'static str, labels: &Labels<'_>) -> Counter {
    recorder.register_counter(&key(name, labels), &METADATA)
}

pub(super) fn histogram(
    recorder: &dyn Recorder,
    name: &'static str,
    labels: &Labels<'_>,
) -> Histogram {
    recorder.register_histogram(&key(name, labels), &METADATA)
}

fn key(name: &'static str, labels: &Labels<'_>) -> Key {
    let labels: Vec<Label> = labels
        .iter()
        .map(|(key, value)| Label::new(*key, (*value).to_owned()))
        .collect();
    Key::from_parts(name, labels)
}
