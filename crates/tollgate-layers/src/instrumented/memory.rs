//! The numbers of a memory store.

use std::hash::BuildHasher;

use metrics::Unit;
use tollgate_core::Clock;
use tollgate_memory::MemoryStore;

/// Hands the numbers of a [`MemoryStore`] to the recorder of the [`metrics`] facade, as they are now.
///
/// To be called when the numbers are wanted: before metrics are rendered, or every few seconds. `name` is the label
/// `store` of all of them.
///
/// | name | type | meaning |
/// |---|---|---|
/// | `tollgate_memory_keys` | gauge | keys in the table |
/// | `tollgate_memory_capacity_keys` | gauge | the most keys it holds |
/// | `tollgate_memory_overflow_cells` | gauge | overflow cells in use |
/// | `tollgate_memory_evictions_total` | counter | keys that capacity drove out while their state still counted |
/// | `tollgate_memory_shared_judgements_total` | counter | calls judged by a state shared with other keys |
///
/// ```
/// use tollgate_layers::observe_memory;
/// use tollgate_memory::MemoryStore;
///
/// let store = MemoryStore::new();
/// observe_memory("memory", &store);
/// ```
pub fn observe_memory<C, H>(name: &'static str, store: &MemoryStore<C, H>)
where
    C: Clock,
    H: BuildHasher + Send + Sync + 'static,
{
    let stats = store.stats();
    let gauges = [
        ("tollgate_memory_keys", stats.keys, "keys in the table"),
        (
            "tollgate_memory_capacity_keys",
            stats.max_capacity,
            "the most keys the table holds",
        ),
        (
            "tollgate_memory_overflow_cells",
            stats.overflow_cells,
            "overflow cells in use",
        ),
    ];
    for (metric, value, meaning) in gauges {
        metrics::describe_gauge!(metric, Unit::Count, meaning);
        metrics::gauge!(metric, "store" => name).set(float(value));
    }
    let counters = [
        (
            "tollgate_memory_evictions_total",
            stats.evicted_live,
            "keys that capacity drove out while their state still counted",
        ),
        (
            "tollgate_memory_shared_judgements_total",
            stats.judged_from_shared_cells,
            "calls judged by a state shared with other keys",
        ),
    ];
    for (metric, value, meaning) in counters {
        metrics::describe_counter!(metric, Unit::Count, meaning);
        metrics::counter!(metric, "store" => name).absolute(value);
    }
}

/// A gauge takes a float. A store holds fewer than 2^32 keys, so nothing is lost.
fn float(keys: usize) -> f64 {
    f64::from(u32::try_from(keys).unwrap_or(u32::MAX))
}
