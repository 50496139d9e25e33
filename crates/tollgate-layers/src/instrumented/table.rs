//! A table that is only ever added to, read without a lock.

use std::hash::{BuildHasher, Hasher};
use std::sync::OnceLock;

use parking_lot::Mutex;

/// The most entries: what a metrics backend bears of one label.
pub(super) const MAX_ENTRIES: usize = 256;
/// Half of the slots stay empty, so that a search always ends soon.
const SLOTS: usize = 2 * MAX_ENTRIES;

/// What belongs to a policy, by scope and name.
pub(super) struct Table<V> {
    hasher: ahash::RandomState,
    slots: Box<[OnceLock<Box<Entry<V>>>]>,
    entries: Mutex<usize>,
}

struct Entry<V> {
    scope: Box<str>,
    policy: Box<str>,
    value: V,
}

impl<V> Entry<V> {
    /// No bytes are compared where there are none: an empty box points nowhere, and a comparison that loads from there
    /// under an empty mask takes some processors ten times as long as the rest of a hit.
    #[inline]
    fn is_of(&self, scope: &str, policy: &str) -> bool {
        let same_scope = if scope.is_empty() {
            self.scope.is_empty()
        } else {
            *self.scope == *scope
        };
        same_scope && *self.policy == *policy
    }
}

impl<V> Table<V> {
    pub(super) fn new() -> Self {
        Self {
            hasher: ahash::RandomState::new(),
            slots: (0..SLOTS).map(|_| OnceLock::new()).collect(),
            entries: Mutex::new(0),
        }
    }

    /// The value of `policy` in `scope`, if there is one yet.
    #[inline]
    pub(super) fn get(&self, scope: &str, policy: &str) -> Option<&V> {
        self.find(scope, policy).ok()
    }

    /// Makes the value of `policy` in `scope`, unless somebody else just has; `None` if the table is full.
    pub(super) fn insert(&self, scope: &str, policy: &str, value: V) -> Option<&V> {
        let mut entries = self.entries.lock();
        let slot = match self.find(scope, policy) {
            Ok(value) => return Some(value),
            Err(_) if *entries == MAX_ENTRIES => return None,
            Err(slot) => slot,
        };
        *entries += 1;
        let entry = || {
            Box::new(Entry {
                scope: scope.into(),
                policy: policy.into(),
                value,
            })
        };
        Some(&slot.get_or_init(entry).value)
    }

    /// The value, or the slot where it belongs.
    #[inline]
    fn find(&self, scope: &str, policy: &str) -> Result<&V, &OnceLock<Box<Entry<V>>>> {
        let mut place = self.home(scope, policy);
        loop {
            let slot = &self.slots[place];
            match slot.get() {
                None => return Err(slot),
                Some(entry) if entry.is_of(scope, policy) => {
                    return Ok(&entry.value);
                }
                Some(_) => place = (place + 1) % SLOTS,
            }
        }
    }

    #[inline]
    fn home(&self, scope: &str, policy: &str) -> usize {
        let mut hasher = self.hasher.build_hasher();
        hasher.write(policy.as_bytes());
        if !scope.is_empty() {
            hasher.write(scope.as_bytes());
        }
        let slots = u64::try_from(SLOTS).unwrap_or(1);
        usize::try_from(hasher.finish() % slots).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scope_and_policy_are_told_apart_wherever_the_border_lies() {
        let table = Table::new();
        table.insert("a", "bc", 1);
        table.insert("ab", "c", 2);
        assert_eq!(table.get("a", "bc"), Some(&1));
        assert_eq!(table.get("ab", "c"), Some(&2));
        assert_eq!(table.get("", "abc"), None);
    }

    #[test]
    fn the_first_value_stays() {
        let table = Table::new();
        assert_eq!(table.insert("", "a", 1), Some(&1));
        assert_eq!(table.insert("", "a", 2), Some(&1));
    }

    #[test]
    fn a_full_table_takes_nobody_in_and_finds_all_it_has() {
        let table = Table::new();
        for index in 0..MAX_ENTRIES {
            assert!(table.insert("", &index.to_string(), index).is_some());
        }
        assert_eq!(table.insert("", "one more", 0), None);
        for index in 0..MAX_ENTRIES {
            assert_eq!(table.get("", &index.to_string()), Some(&index));
        }
    }

    #[test]
    fn threads_that_meet_get_one_value() {
        let table = Table::new();
        let seen: Vec<usize> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8)
                .map(|index| {
                    scope.spawn({
                        let table = &table;
                        move || *table.insert("", "a", index).unwrap()
                    })
                })
                .collect();
            threads
                .into_iter()
                .map(|thread| thread.join().unwrap())
                .collect()
        });
        assert!(
            seen.iter()
                .all(|value| value == table.get("", "a").unwrap())
        );
    }
}
