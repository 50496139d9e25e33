//! What the clerk's word does to the table.

use tollgate_core::{Algorithm, Check, Cost, Key, Op, Policy, Space, Timestamp};

use super::Table;
use crate::entry::Moment;

type Real = Table<ahash::RandomState>;

const HIT: Op = Op::Hit(Cost::ONE);

fn at(seconds: u64) -> Timestamp {
    Timestamp::from_micros(seconds * 1_000_000).unwrap()
}

/// A table with one key in it, of which the clerk knows, hit at second 1,000 under a limit of two a minute.
fn with(body: impl FnOnce(&Real, &Check<'_>, u64)) {
    let table = Real::new(100, ahash::RandomState::new());
    let quota = "2/minute".parse().unwrap();
    let policy = Policy::new("p", Algorithm::TokenBucket, quota).unwrap();
    let space = Space::new("", "", &policy);
    let check = Check {
        key: Key::new(&space, b"key").unwrap(),
        policy: &policy,
        op: HIT,
    };
    let (_, verdict, _) = table.judge(&check, || Moment::of_clock(at(1_000)));
    assert!(verdict.is_allowed());
    let hash = table.hash(&check.key);
    for entry in &mut crate::sync::Lock::lock(table.shard(hash)).entries {
        entry.make_resident(0);
    }
    body(&table, &check, hash);
}

#[test]
fn a_key_whose_time_is_over_leaves_without_a_trace() {
    with(|table, _, hash| {
        assert_eq!(table.release(hash, false, at(2_000)), None);
        assert_eq!(table.population().keys(), 0);
        assert_eq!(table.overflow_cells(), 0);
    });
}

#[test]
fn a_key_that_was_hit_since_stays_until_its_state_is_as_good_as_never_seen() {
    with(|table, _, hash| {
        let stays = table.release(hash, false, at(1_010)).unwrap();
        assert!(stays >= 10_000_000, "{stays}");
        assert_eq!(table.population().keys(), 1);
    });
}

#[test]
fn for_want_of_room_a_live_state_goes_on_in_the_overflow() {
    with(|table, check, hash| {
        assert_eq!(table.release(hash, true, at(1_010)), None);
        assert_eq!((table.population().keys(), table.overflow_cells()), (0, 1));
        let (_, verdict, _) = table.judge(check, || Moment::of_clock(at(1_011)));
        assert!(verdict.is_allowed());
        assert_eq!((table.population().keys(), table.overflow_cells()), (1, 0));
        let (_, verdict, _) = table.judge(check, || Moment::of_clock(at(1_012)));
        assert!(!verdict.is_allowed());
    });
}

#[test]
fn the_clerk_s_word_about_a_hash_it_no_longer_knows_changes_nothing() {
    with(|table, _, hash| {
        for entry in &mut crate::sync::Lock::lock(table.shard(hash)).entries {
            entry.leave_to_the_hand();
        }
        assert_eq!(table.release(hash, true, at(2_000)), None);
        assert_eq!(table.population().keys(), 1);
    });
}
