//! What many keys of a shard have in common, kept once: an entry names it by a number and fits a cache line.

use hashbrown::HashTable;

use crate::pace::Pace;

/// The space a key belongs to, and how fast its state fades.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Kind {
    /// The two halves of [`Key::digest`](tollgate_core::Key::digest).
    pub(crate) digest: [u64; 2],
    pub(crate) pace: Pace,
}

/// The number of a kind in one shard.
pub(crate) type KindId = u32;

/// The kinds of one shard.
#[derive(Debug, Default)]
pub(crate) struct Kinds {
    list: Vec<Option<Kind>>,
    ids: HashTable<KindId>,
    free: Vec<KindId>,
    /// How many there were when unused ones were last let go.
    kept: usize,
}

impl Kinds {
    pub(crate) fn get(&self, id: KindId) -> Kind {
        let kind = usize::try_from(id).ok().and_then(|id| self.list[id]);
        kind.expect("an entry's kind is kept as long as the entry")
    }

    pub(crate) fn find(&self, kind: Kind) -> Option<KindId> {
        self.ids
            .find(hash(kind), |id| self.get(*id) == kind)
            .copied()
    }

    /// The number of `kind`, a new one if it has none.
    pub(crate) fn intern(&mut self, kind: Kind) -> KindId {
        if let Some(id) = self.find(kind) {
            return id;
        }
        let id = self.free.pop().unwrap_or_else(|| {
            self.list.push(None);
            u32::try_from(self.list.len() - 1).expect("there are fewer kinds than keys")
        });
        if let Some(place) = usize::try_from(id)
            .ok()
            .and_then(|id| self.list.get_mut(id))
        {
            *place = Some(kind);
        }
        let list = &self.list;
        self.ids.insert_unique(hash(kind), id, |id| {
            usize::try_from(*id)
                .ok()
                .and_then(|id| list[id])
                .map_or(0, hash)
        });
        id
    }

    /// Whether so many kinds were added that unused ones should be looked for.
    pub(crate) fn has_grown(&self) -> bool {
        self.ids.len() > 2 * self.kept + 16
    }

    /// Lets go of all kinds but those `in_use`.
    pub(crate) fn retain(&mut self, in_use: impl Iterator<Item = KindId>) {
        let mut used = vec![false; self.list.len()];
        for id in in_use.filter_map(|id| usize::try_from(id).ok()) {
            used[id] = true;
        }
        let (list, free) = (&mut self.list, &mut self.free);
        self.ids.retain(|id| {
            let place = usize::try_from(*id).unwrap_or(usize::MAX);
            if !used[place] {
                list[place] = None;
                free.push(*id);
            }
            used[place]
        });
        self.kept = self.ids.len();
    }
}

/// The digest is a cryptographic hash already.
fn hash(kind: Kind) -> u64 {
    kind.digest[1] ^ kind.pace.bits().wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

#[cfg(test)]
mod tests {
    use tollgate_core::{Policy, Quota};

    use super::*;

    fn kind(space: u64, limit: u32) -> Kind {
        let policy = Policy::from(Quota::per_second(limit));
        Kind {
            digest: [space, space],
            pace: Pace::of(policy.rule()),
        }
    }

    #[test]
    fn a_kind_has_one_number_as_long_as_it_is_in_use() {
        let mut kinds = Kinds::default();
        let first = kinds.intern(kind(1, 1));
        let other_quota = kinds.intern(kind(1, 7));
        let other_space = kinds.intern(kind(2, 1));
        assert_eq!(kinds.intern(kind(1, 1)), first);
        assert!(first != other_quota && other_quota != other_space && first != other_space);

        kinds.retain([first, other_space].into_iter());
        assert_eq!(kinds.find(kind(1, 7)), None);
        assert_eq!(kinds.get(other_space), kind(2, 1));
        assert_eq!(kinds.intern(kind(3, 3)), other_quota, "its number is free");
        assert_eq!(kinds.get(first), kind(1, 1));
    }

    #[test]
    fn unused_kinds_are_looked_for_once_there_are_many_more() {
        let mut kinds = Kinds::default();
        for space in 0..16 {
            kinds.intern(kind(space, 1));
        }
        assert!(!kinds.has_grown());
        let last = kinds.intern(kind(16, 1));
        assert!(kinds.has_grown());
        kinds.retain(std::iter::once(last));
        assert!(!kinds.has_grown());
    }
}
