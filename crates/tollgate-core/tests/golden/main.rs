//! The golden vectors of the conformance kit, played on the algorithms themselves.
//!
//! Their format, and what each number means, stands beside them in `tollgate-conformance/vectors/README.md`.

mod play;
mod time;
mod vector;

use std::fs;
use std::path::Path;

use vector::Vector;

fn vectors() -> Vec<(String, Vec<Vector>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tollgate-conformance/vectors");
    let entries = fs::read_dir(folder).expect("the vectors of this repository");
    let paths = entries.map(|entry| entry.expect("a readable folder").path());
    let mut files: Vec<_> = paths
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "json")
        })
        .map(|path| {
            let name = path.file_name().expect("a file").display().to_string();
            let text = fs::read_to_string(&path).expect("a readable file");
            let vectors =
                serde_json::from_str(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
            (name, vectors)
        })
        .collect();
    files.sort_by(|(one, _), (other, _)| one.cmp(other));
    files
}

/// All failures are shown at once, so that a change of a rule shows everything it changes.
#[test]
fn every_vector_is_answered_as_it_was_worked_out() {
    let mut failures = Vec::new();
    let mut played = 0;
    for (file, vectors) in vectors() {
        for vector in vectors {
            played += 1;
            let wrong = play::play(&vector);
            failures.extend(
                wrong
                    .into_iter()
                    .map(|wrong| format!("{file}: {}: {wrong}", vector.name)),
            );
        }
    }
    assert!(failures.is_empty(), "\n{}", failures.join("\n"));
    assert!(played >= 80, "only {played} vectors were found");
}

#[test]
fn every_vector_says_why() {
    for (file, vectors) in vectors() {
        for vector in vectors {
            assert!(!vector.why.is_empty(), "{file}: {}", vector.name);
            assert!(!vector.steps.is_empty(), "{file}: {}", vector.name);
        }
    }
}
