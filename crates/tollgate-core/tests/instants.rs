//! Instants and clocks.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tollgate_core::{Clock, ErrorKind, ManualClock, SystemClock, Timestamp};

const LAST: u64 = 8_000_000_000_000_000;

#[test]
fn the_range_of_instants_ends_with_an_error_and_a_clock_stands_still_there() {
    assert_eq!(Timestamp::from_micros(LAST).unwrap(), Timestamp::MAX);
    let error = Timestamp::from_micros(LAST + 1).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    assert!(error.to_string().contains("8000000000000001"), "{error}");
    assert_eq!(Timestamp::saturating_from_micros(u64::MAX), Timestamp::MAX);
    assert_eq!(Timestamp::MAX + Duration::MAX, Timestamp::MAX);
    assert_eq!(
        Timestamp::EPOCH + Duration::from_nanos(1_999),
        Timestamp::from_micros(1).unwrap()
    );
}

#[test]
fn the_last_instant_and_the_longest_period_together_stay_below_2_53() {
    let longest = u64::try_from(tollgate_core::Quota::MAX_PERIOD.as_micros()).unwrap();
    // A sliding window may have to wait for two periods.
    assert!(LAST + 2 * longest < 1 << 53);
}

#[test]
fn the_wall_clock_becomes_an_instant_unless_it_lies_out_of_range() {
    let instant = UNIX_EPOCH + Duration::from_micros(1_234_567);
    assert_eq!(Timestamp::try_from(instant).unwrap().as_micros(), 1_234_567);
    for outside in [
        UNIX_EPOCH - Duration::from_secs(1),
        UNIX_EPOCH + Duration::from_secs(9_000_000_000),
    ] {
        assert_eq!(
            Timestamp::try_from(outside).unwrap_err().kind(),
            ErrorKind::InvalidInput
        );
    }
    let before = Timestamp::try_from(SystemTime::now()).unwrap();
    let now = SystemClock.now();
    let after = Timestamp::try_from(SystemTime::now()).unwrap();
    assert!(
        before <= now && now <= after || before > after,
        "the clock stepped back meanwhile"
    );
}

#[test]
fn whole_seconds_are_rounded_up_and_text_shows_all_six_decimals() {
    for (micros, seconds, text) in [
        (0, 0, "0.000000"),
        (1, 1, "0.000001"),
        (1_000_000, 1, "1.000000"),
        (1_000_001, 2, "1.000001"),
    ] {
        let instant = Timestamp::from_micros(micros).unwrap();
        assert_eq!(
            (instant.as_secs_ceil(), instant.to_string().as_str()),
            (seconds, text)
        );
    }
}

#[test]
fn time_between_instants_is_never_negative() {
    let [early, late] = [3, 10].map(|micros| Timestamp::from_micros(micros).unwrap());
    assert_eq!(late.saturating_since(early), Duration::from_micros(7));
    assert_eq!(early.saturating_since(late), Duration::ZERO);
}

#[test]
fn a_manual_clock_stands_still_moves_on_steps_back_and_is_shared_by_its_clones() {
    let clock = ManualClock::new(Timestamp::from_micros(5).unwrap());
    let clone = clock.clone();
    assert_eq!(clock.now(), clock.now());
    clock.advance(Duration::from_micros(7));
    assert_eq!(clone.now().as_micros(), 12);
    clone.set(Timestamp::from_micros(2).unwrap());
    assert_eq!(clock.now().as_micros(), 2);
    clock.advance(Duration::MAX);
    assert_eq!(clock.now(), Timestamp::MAX);
}
