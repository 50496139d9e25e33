//! Keys that outlive the call they came with.

use equivalent::Equivalent;
use tollgate_core::Key;

/// A key's digest and subject, which are equal if and only if the keys are.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct OwnedKey {
    digest: u128,
    subject: Box<[u8]>,
}

impl From<&Key<'_>> for OwnedKey {
    fn from(key: &Key<'_>) -> Self {
        Self {
            digest: key.digest(),
            subject: key.subject().into(),
        }
    }
}

/// A borrowed key finds its owned one, and hashes as it does: nothing is allocated to look one up.
impl Equivalent<OwnedKey> for Key<'_> {
    fn equivalent(&self, owned: &OwnedKey) -> bool {
        self.digest() == owned.digest && self.subject() == &*owned.subject
    }
}

#[cfg(test)]
mod tests {
    use tollgate_core::{Policy, Quota, Space};

    use super::*;

    #[test]
    fn a_key_hashes_as_its_owned_one_and_finds_no_other() {
        let policy = Policy::from(Quota::per_minute(1));
        let space = Space::new("", "", &policy);
        let long = vec![b'x'; Key::MAX_SUBJECT + 1];
        let subjects: [&[u8]; 3] = [b"a", b"ab", &long];
        let keys = subjects.map(|subject| Key::new(&space, subject).expect("not empty"));
        let hasher = ahash::RandomState::new();
        for (index, key) in keys.iter().enumerate() {
            let owned = OwnedKey::from(key);
            assert_eq!(hasher.hash_one(key), hasher.hash_one(&owned));
            for (other, found) in keys.iter().enumerate() {
                assert_eq!(found.equivalent(&owned), index == other);
            }
        }
    }
}
