//! Every subject that was seen, once: a number to work with, its name and how often it came.

use std::hash::BuildHasher;

use anyhow::{Context, Result};
use hashbrown::{DefaultHashBuilder, HashTable};
use sha2::{Digest, Sha256};

/// Longest name kept as it is. A longer one keeps its start and gets a digest of the whole, so that the memory a
/// subject takes is bounded.
const MAX_NAME_BYTES: usize = 128;
const DIGEST_BYTES: usize = 16;

/// A subject's place in [`Subjects`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct SubjectId(u32);

impl SubjectId {
    fn index(self) -> usize {
        usize::try_from(self.0).expect("this program runs on machines of at least 32 bits")
    }
}

/// All subjects of a replay: about 30 bytes each and the name.
///
/// The only part of a replay whose memory grows with the log, by its distinct subjects and not by its lines.
#[derive(Debug, Default)]
pub(crate) struct Subjects {
    /// All names end to end.
    names: String,
    /// Where each name ends.
    ends: Vec<usize>,
    hits: Vec<u64>,
    ids: HashTable<SubjectId>,
    hasher: DefaultHashBuilder,
}

impl Subjects {
    /// The number of the subject called `name`, new if it was never seen.
    ///
    /// # Errors
    ///
    /// More subjects than 32 bits can number.
    pub(crate) fn id_of(&mut self, name: &str) -> Result<SubjectId> {
        if name.len() > MAX_NAME_BYTES {
            return self.id_of_bounded(&bounded(name));
        }
        self.id_of_bounded(name)
    }

    fn id_of_bounded(&mut self, name: &str) -> Result<SubjectId> {
        let Self {
            names,
            ends,
            hits,
            ids,
            hasher,
        } = self;
        let hash = hasher.hash_one(name);
        if let Some(id) = ids.find(hash, |id| name_in(names, ends, *id) == name) {
            return Ok(*id);
        }
        let id = u32::try_from(ends.len()).context("more than 4,294,967,295 different subjects")?;
        names.push_str(name);
        ends.push(names.len());
        hits.push(0);
        let hash_of = |id: &SubjectId| hasher.hash_one(name_in(names, ends, *id));
        ids.insert_unique(hash, SubjectId(id), hash_of);
        Ok(SubjectId(id))
    }

    pub(crate) fn count_hit(&mut self, id: SubjectId) {
        self.hits[id.index()] += 1;
    }

    pub(crate) fn hits(&self, id: SubjectId) -> u64 {
        self.hits[id.index()]
    }

    pub(crate) fn name(&self, id: SubjectId) -> &str {
        name_in(&self.names, &self.ends, id)
    }

    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }
}

fn name_in<'a>(names: &'a str, ends: &[usize], id: SubjectId) -> &'a str {
    let index = id.index();
    let start = index.checked_sub(1).map_or(0, |previous| ends[previous]);
    &names[start..ends[index]]
}

/// The start of `name` and 128 bits of its SHA-256. Longer than any name that is kept whole, so it never equals one.
fn bounded(name: &str) -> String {
    let mut end = MAX_NAME_BYTES;
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    let digest = Sha256::digest(name.as_bytes());
    let hex: String = digest[..DIGEST_BYTES]
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    format!("{}…{hex}", &name[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_keeps_its_number_and_its_count() {
        let mut subjects = Subjects::default();
        let names: Vec<String> = (0..5000).map(|number| format!("client-{number}")).collect();
        for round in 1..=2_u64 {
            for (index, name) in names.iter().enumerate() {
                let id = subjects.id_of(name).unwrap();
                assert_eq!(id.index(), index);
                assert_eq!(subjects.name(id), name);
                subjects.count_hit(id);
                assert_eq!(subjects.hits(id), round);
            }
        }
        assert_eq!(subjects.len(), names.len());
    }

    #[test]
    fn the_empty_name_and_names_that_join_to_the_same_text_stay_apart() {
        let mut subjects = Subjects::default();
        let ids = ["", "ab", "c", "a", "bc"].map(|name| subjects.id_of(name).unwrap().0);
        assert_eq!(ids, [0, 1, 2, 3, 4]);
    }

    #[test]
    fn long_names_are_bounded_and_still_told_apart() {
        let mut subjects = Subjects::default();
        let long = "ä".repeat(10_000);
        let first = subjects.id_of(&long).unwrap();
        let second = subjects.id_of(&format!("{long}x")).unwrap();
        assert_ne!(first, second);
        assert_eq!(subjects.id_of(&long).unwrap(), first);
        assert!(subjects.name(first).len() <= MAX_NAME_BYTES + 3 + 2 * DIGEST_BYTES);
    }

    #[test]
    fn no_short_name_can_stand_for_a_long_one() {
        let mut subjects = Subjects::default();
        let long = subjects.id_of(&"x".repeat(MAX_NAME_BYTES + 1)).unwrap();
        let spelled_out = subjects.name(long).to_owned();
        assert_ne!(subjects.id_of(&spelled_out).unwrap(), long);
    }
}
