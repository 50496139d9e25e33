//! The files of vectors, built into the library.

use crate::golden::vector::{Vector, VectorError};

macro_rules! files {
    ($($name:literal),+ $(,)?) => {
        &[$(($name, include_str!(concat!("../../vectors/", $name)))),+]
    };
}

/// Every file in `vectors/`.
const FILES: &[(&str, &str)] = files![
    "buckets.json",
    "clock_steps.json",
    "fixed_window.json",
    "gcra.json",
    "leaky_bucket.json",
    "limit_zero.json",
    "long_periods.json",
    "quota_changes.json",
    "settlements.json",
    "sliding_log.json",
    "sliding_window.json",
];

/// The vectors of all files, in the order of the list.
///
/// They are part of the library, and a test reads them all, so that no user meets one that cannot be read.
pub(crate) fn vectors() -> Vec<Vector> {
    let read = FILES.iter().map(|(name, text)| {
        Vector::read_all(text).unwrap_or_else(|error: VectorError| panic!("{name}: {error}"))
    });
    read.flatten().collect()
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};
    use std::path::Path;

    use super::*;

    #[test]
    fn every_file_of_vectors_is_listed_and_every_listed_file_is_there() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("vectors");
        let there: BTreeSet<String> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| name.ends_with(".json"))
            .collect();
        let listed: BTreeSet<String> = FILES.iter().map(|(name, _)| (*name).to_owned()).collect();
        assert_eq!(listed, there);
    }

    #[test]
    fn every_vector_can_be_read_and_no_two_share_a_name() {
        let mut first_seen = BTreeMap::new();
        for (file, text) in FILES {
            for vector in Vector::read_all(text).unwrap_or_else(|error| panic!("{file}: {error}")) {
                let other = first_seen.insert(vector.name.clone(), file);
                assert_eq!(other, None, "{file} repeats the name {}", vector.name);
            }
        }
    }
}
