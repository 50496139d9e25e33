//! Faults in telling keys apart.

use std::sync::{Mutex, MutexGuard};

use tollgate_conformance::{BoxError, Family, Harness, ReferenceStore};
use tollgate_core::{
    Batch, Capabilities, Check, Key, Policy, Quota, Result, Space, Store, Verdicts,
};

use crate::caught;

/// How a store spells a key. Spelling in the one space that is left takes the rest of the key's meaning with it.
type Spelling = fn(&Key<'_>) -> Vec<u8>;

/// Which keys of all there are a reset of one forgets, by their spelling.
type Matches = fn(&[u8], &[u8]) -> bool;

/// A sound store that is told keys in its own spelling.
#[derive(Debug)]
struct Misspelled {
    inner: ReferenceStore,
    spelling: Spelling,
    matches: Option<Matches>,
    space: Space,
    seen: Mutex<Vec<Vec<u8>>>,
}

impl Misspelled {
    fn seen(&self) -> MutexGuard<'_, Vec<Vec<u8>>> {
        self.seen.lock().unwrap()
    }
}

impl Store for Misspelled {
    async fn apply<'a>(&'a self, batch: Batch<'a>) -> Result<Verdicts> {
        let spelled: Vec<Vec<u8>> = batch
            .checks()
            .iter()
            .map(|check| (self.spelling)(&check.key))
            .collect();
        self.seen().extend(spelled.iter().cloned());
        let checks: Vec<Check<'_>> = batch
            .checks()
            .iter()
            .zip(&spelled)
            .map(|(check, subject)| {
                Ok(Check {
                    key: Key::new(&self.space, subject)?,
                    ..*check
                })
            })
            .collect::<Result<_>>()?;
        self.inner
            .apply(Batch::new(&checks)?.at(batch.instant()))
            .await
    }

    async fn reset<'a>(&'a self, keys: &'a [Key<'a>]) -> Result<u64> {
        let mut found = 0;
        for key in keys {
            let named = (self.spelling)(key);
            let subjects = match self.matches {
                None => vec![named],
                Some(matches) => self
                    .seen()
                    .iter()
                    .filter(|seen| matches(&named, seen))
                    .cloned()
                    .collect(),
            };
            for subject in subjects {
                found += self
                    .inner
                    .reset(&[Key::new(&self.space, &subject)?])
                    .await?;
            }
        }
        Ok(found)
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::ALL
    }
}

struct Misspelling {
    spelling: Spelling,
    matches: Option<Matches>,
}

impl Harness for Misspelling {
    type Store = Misspelled;

    fn name(&self) -> &str {
        "misspelled"
    }

    async fn store(&self) -> std::result::Result<Misspelled, BoxError> {
        Ok(Misspelled {
            inner: ReferenceStore::default(),
            spelling: self.spelling,
            matches: self.matches,
            space: Space::new("", "", &Policy::from(Quota::per_second(1))),
            seen: Mutex::default(),
        })
    }
}

fn parts<'a>(key: &'a Key<'a>) -> [&'a [u8]; 5] {
    let space = key.space();
    [
        space.family().tag().as_bytes(),
        space.prefix().as_bytes(),
        space.scope().as_bytes(),
        space.policy().as_bytes(),
        key.subject(),
    ]
}

#[track_caller]
fn misspelled(spelling: Spelling, cases: &[&str]) {
    let matches = None;
    caught(Misspelling { spelling, matches }, Family::Hygiene, cases);
}

#[test]
fn a_store_that_joins_the_parts_of_a_key_with_a_slash_is_caught() {
    misspelled(
        |key| parts(key).join(&b'/'),
        &["parts_of_a_key_never_run_into_each_other"],
    );
}

#[test]
fn a_store_that_joins_the_parts_of_a_key_with_nothing_is_caught() {
    misspelled(
        |key| parts(key).concat(),
        &["parts_of_a_key_never_run_into_each_other"],
    );
}

#[test]
fn a_store_that_mends_what_is_not_utf8_is_caught() {
    let spelling = |key: &Key<'_>| {
        String::from_utf8_lossy(&key.encode())
            .into_owned()
            .into_bytes()
    };
    misspelled(spelling, &["hostile_subjects_are_counted_apart"]);
}

#[test]
fn a_store_that_ends_a_key_at_its_first_zero_is_caught() {
    let spelling = |key: &Key<'_>| {
        let mut encoded = key.encode();
        let end = encoded
            .iter()
            .position(|byte| *byte == 0)
            .unwrap_or(encoded.len());
        encoded.truncate(end);
        encoded
    };
    misspelled(spelling, &["hostile_subjects_are_counted_apart"]);
}

#[test]
fn a_store_that_knows_no_capitals_is_caught() {
    misspelled(
        |key| key.encode().to_ascii_lowercase(),
        &["hostile_subjects_are_counted_apart"],
    );
}

#[test]
fn a_store_that_trims_subjects_is_caught() {
    misspelled(
        |key| key.encode().trim_ascii().to_vec(),
        &["hostile_subjects_are_counted_apart"],
    );
}

#[test]
fn a_store_with_short_columns_is_caught() {
    let spelling = |key: &Key<'_>| {
        let mut encoded = key.encode();
        encoded.truncate(200);
        encoded
    };
    misspelled(spelling, &["subjects_of_any_length_are_counted_apart"]);
}

#[test]
fn a_store_that_takes_hashed_subjects_for_others_is_caught() {
    let spelling = |key: &Key<'_>| {
        let mut encoded = key.encode();
        // The letter that tells a hash from a subject spelled like it.
        encoded[2] = b'v';
        encoded
    };
    misspelled(
        spelling,
        &["a_hashed_subject_never_meets_one_spelled_like_its_hash"],
    );
}

#[test]
fn a_store_where_algorithms_share_a_key_is_caught() {
    let spelling = |key: &Key<'_>| key.encode().split_off(2);
    misspelled(spelling, &["algorithms_under_one_name_never_meet"]);
}

#[test]
fn a_store_that_resets_whatever_begins_alike_is_caught() {
    let resetting = Misspelling {
        spelling: |key| key.encode(),
        matches: Some(|named, seen| seen.starts_with(named)),
    };
    caught(
        resetting,
        Family::Hygiene,
        &["a_reset_forgets_exactly_the_keys_it_names"],
    );
}

#[test]
fn a_store_that_resets_by_pattern_is_caught() {
    let resetting = Misspelling {
        spelling: |key| key.encode(),
        matches: Some(|named, seen| match named.strip_suffix(b"*") {
            Some(beginning) => seen.starts_with(beginning),
            None => seen == named,
        }),
    };
    caught(resetting, Family::Hygiene, &["a_reset_takes_no_pattern"]);
}
