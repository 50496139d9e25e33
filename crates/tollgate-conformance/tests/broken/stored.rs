//! Faults in reading what others have stored.

use tollgate_conformance::Family;

use crate::caught;
use crate::tampering::{NONE, Tricks, tampered};

#[test]
fn a_store_that_reads_any_version_as_its_own_is_caught() {
    const ANY_VERSION: Tricks = Tricks {
        on_load: |_, _, loaded| {
            for value in loaded.values.iter_mut().flatten() {
                value[0] = 1;
            }
        },
        ..NONE
    };
    let cases = [
        "gcra_never_misreads_a_later_format",
        "sliding_log_never_misreads_a_later_format",
    ];
    caught(tampered!(ANY_VERSION), Family::StoredState, &cases);
}

#[test]
fn a_store_that_fills_up_what_is_torn_is_caught() {
    const FILLS_UP: Tricks = Tricks {
        on_load: |_, _, loaded| {
            for value in loaded.values.iter_mut().flatten() {
                let whole = 2 + (value.len() - 2).next_multiple_of(8);
                value.resize(whole, 0);
            }
        },
        ..NONE
    };
    let cases = [
        "fixed_window_never_misreads_a_torn_value",
        "sliding_window_never_misreads_a_torn_value",
    ];
    caught(tampered!(FILLS_UP), Family::StoredState, &cases);
}

#[test]
fn a_store_that_cannot_read_what_was_published_is_caught() {
    const ONLY_ITS_OWN: Tricks = Tricks {
        on_load: |_, _, loaded| {
            for value in &mut loaded.values {
                *value = value.take().filter(|bytes| bytes[0] != 1);
            }
        },
        ..NONE
    };
    caught(
        tampered!(ONLY_ITS_OWN),
        Family::StoredState,
        &["leaky_bucket_reads_the_first_published_format"],
    );
}

#[test]
fn a_store_that_reads_only_so_many_hits_of_a_log_is_caught() {
    const THE_FIRST_8000: Tricks = Tricks {
        on_load: |_, _, loaded| {
            for value in loaded.values.iter_mut().flatten() {
                value.truncate(2 + 8_000 * 16);
            }
        },
        ..NONE
    };
    let cases = ["a_long_log_is_counted_and_forgotten_whole"];
    caught(tampered!(THE_FIRST_8000), Family::StoredState, &cases);
}
