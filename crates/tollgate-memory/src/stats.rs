//! What a store tells about itself.

/// How many keys a store holds, and what became of those that had no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Keys in the table now.
    pub keys: usize,
    /// The most keys it holds.
    pub max_capacity: usize,
    /// Keys that capacity drove out while their state still counted, since the store was made.
    ///
    /// Their states went on in overflow cells. A number that grows says that the store is too small for its traffic,
    /// or that somebody is making up keys.
    pub evicted_live: u64,
    /// Overflow cells in use now, expired ones included until they are swept.
    pub overflow_cells: usize,
    /// Calls on keys without a state of their own that were judged by one shared with others, since the store was made.
    pub judged_from_shared_cells: u64,
}
