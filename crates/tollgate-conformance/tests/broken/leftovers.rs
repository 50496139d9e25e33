//! Faults in what is left behind: too little, too much, for too short or too long.

use std::time::Duration;

use tollgate_conformance::{Family, Fresh, ReferenceStore};
use tollgate_core::{Batch, Capabilities, Key, Result, Store, Verdicts};

use crate::caught;
use crate::tampering::{NONE, Tricks, tampered};

#[test]
fn a_backend_without_tricks_is_sound() {
    let results = tollgate_conformance::run(
        tampered!(NONE),
        &[Family::Hygiene, Family::Clock],
        &crate::options(),
    );
    assert_eq!(crate::failed(&results), [""; 0]);
}

#[test]
fn a_store_that_lets_a_key_go_before_its_reset_is_caught() {
    const EARLY: Tricks = Tricks {
        on_write: |write| write.expires_after /= 2,
        ..NONE
    };
    let names = [
        "fixed_window",
        "sliding_window",
        "sliding_log",
        "token_bucket",
    ];
    let held = names.map(|name| format!("{name}_keeps_a_key_until_its_reset"));
    caught(
        tampered!(EARLY),
        Family::Hygiene,
        &held.each_ref().map(String::as_str),
    );
    // And without anybody looking behind the store: the limit is passed.
    let seen = names.map(|name| format!("{name}_is_exact_on_the_stores_own_clock"));
    caught(
        tampered!(EARLY),
        Family::Clock,
        &seen.each_ref().map(String::as_str),
    );
}

#[test]
fn a_store_that_rounds_expiries_down_to_seconds_is_caught() {
    const WHOLE_SECONDS: Tricks = Tricks {
        on_write: |write| write.expires_after = Duration::from_secs(write.expires_after.as_secs()),
        ..NONE
    };
    caught(
        tampered!(WHOLE_SECONDS),
        Family::Hygiene,
        &["keeps_a_key_until_its_reset"],
    );
    caught(
        tampered!(WHOLE_SECONDS),
        Family::Clock,
        &["is_exact_on_the_stores_own_clock"],
    );
}

#[test]
fn a_store_that_sets_no_expiry_is_caught() {
    const FOR_GOOD: Tricks = Tricks {
        on_write: |write| write.expires_after = Duration::MAX,
        ..NONE
    };
    let cases = [
        "gcra_keeps_a_key_until_its_reset_and_not_for_ever",
        "sliding_log_repairs_a_lost_expiry",
    ];
    caught(tampered!(FOR_GOOD), Family::Hygiene, &cases);
}

#[test]
fn a_store_that_keeps_an_expiry_it_finds_and_sets_none_where_there_is_none_is_caught() {
    const ONLY_NEW: Tricks = Tricks {
        on_write: |write| {
            if write.expected.is_some() {
                write.expires_after = Duration::MAX;
            }
        },
        ..NONE
    };
    caught(
        tampered!(ONLY_NEW),
        Family::Hygiene,
        &["token_bucket_repairs_a_lost_expiry"],
    );
}

#[test]
fn a_store_whose_peeks_keep_a_key_alive_is_caught() {
    const KEEPS_ALIVE: Tricks = Tricks {
        on_load: |backend, keys, _| {
            for key in keys {
                if let Some(entry) = backend.entry(key) {
                    backend.put(key, entry.value, Some(Duration::from_secs(86_400)));
                }
            }
        },
        ..NONE
    };
    caught(
        tampered!(KEEPS_ALIVE),
        Family::Hygiene,
        &["peeks_at_leaky_bucket_write_nothing"],
    );
}

#[test]
fn a_store_whose_peeks_create_keys_is_caught() {
    const CREATES: Tricks = Tricks {
        on_load: |backend, keys, loaded| {
            for (key, value) in keys.iter().zip(&mut loaded.values) {
                if value.is_none() {
                    // An empty log is as good as never seen, but it is there.
                    let empty = b"\x01l".to_vec();
                    backend.put(key, empty.clone(), Some(Duration::from_secs(60)));
                    *value = Some(empty);
                }
            }
        },
        ..NONE
    };
    let cases = [
        "peeks_at_gcra_write_nothing",
        "peeks_at_gcra_leave_nothing_to_forget",
    ];
    caught(tampered!(CREATES), Family::Hygiene, &cases);
}

/// Says of every reset that it found what it was told to forget.
#[derive(Debug, Default)]
struct Boasting(ReferenceStore);

impl Store for Boasting {
    async fn apply<'a>(&'a self, batch: Batch<'a>) -> Result<Verdicts> {
        self.0.apply(batch).await
    }

    async fn reset<'a>(&'a self, keys: &'a [Key<'a>]) -> Result<u64> {
        self.0.reset(keys).await?;
        Ok(u64::try_from(keys.len()).unwrap())
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::ALL
    }
}

#[test]
fn a_store_that_counts_what_it_was_told_to_forget_is_caught() {
    let boasting = Fresh::new("boasting", || async { Ok(Boasting::default()) });
    caught(
        boasting,
        Family::Hygiene,
        &["a_reset_says_how_many_keys_there_were"],
    );
}
