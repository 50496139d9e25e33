//! What an error about a quota says to a program, and how it is drawn in a terminal.

use std::time::Duration;

use tollgate_core::{ParseQuotaErrorKind as Kind, Quota, QuotaError, QuotaList};

#[test]
fn a_constructor_refuses_what_text_refuses() {
    let period = Duration::from_secs(1);
    let too_long = Quota::MAX_PERIOD + Quota::MIN_PERIOD;
    let fine = Duration::from_micros(1_500);
    let refusals = [
        (
            Quota::new(1_000_000_000_001, period),
            QuotaError::LimitTooLarge {
                limit: 1_000_000_000_001,
            },
        ),
        (Quota::new(1, Duration::ZERO), QuotaError::PeriodZero),
        (
            Quota::new(1, Duration::from_micros(999)),
            QuotaError::PeriodTooShort {
                period: Duration::from_micros(999),
            },
        ),
        (
            Quota::new(1, too_long),
            QuotaError::PeriodTooLong { period: too_long },
        ),
        (
            Quota::new(1, Duration::MAX),
            QuotaError::PeriodTooLong {
                period: Duration::MAX,
            },
        ),
        (
            Quota::new(1, fine),
            QuotaError::PeriodNotWholeMilliseconds { period: fine },
        ),
        (Quota::per_second(1).with_burst(0), QuotaError::BurstZero),
        (
            Quota::per_second(1).with_burst(u64::MAX),
            QuotaError::BurstTooLarge { burst: u64::MAX },
        ),
        (
            Quota::per_second(0).with_burst(1),
            QuotaError::BurstWhileBlocked,
        ),
    ];
    for (result, error) in refusals {
        assert_eq!(result, Err(error));
    }
    assert!(Quota::new(Quota::MAX_LIMIT, Quota::MAX_PERIOD).is_ok());
    assert!(Quota::new(0, Quota::MIN_PERIOD).is_ok());
}

#[test]
fn a_constructor_refuses_what_no_bucket_can_count_exactly() {
    // 2^32 - 1 shares only 15 with the 604 800 seconds of a week, so a unit weighs 40 320 even in ticks of a second,
    // and 10^12 of them weigh 4 * 10^16: more than 2^52.
    let week = Quota::per_week(u32::MAX);
    assert_eq!(
        week.with_burst(Quota::MAX_BURST),
        Err(QuotaError::TooFine {
            limit: u64::from(u32::MAX),
            period: Duration::from_secs(7 * 86_400),
            capacity: Quota::MAX_BURST,
        })
    );
    assert!(week.with_burst(100_000_000_000).is_ok());
}

#[test]
fn an_error_tells_its_parts_to_a_program() {
    let error = "é 100/fortnight".parse::<Quota>().unwrap_err();
    assert_eq!(
        (error.kind(), error.column(), error.found()),
        (Kind::Unexpected, 1, "é")
    );

    let error = "1/s, 2/\u{b5}s".parse::<QuotaList>().unwrap_err();
    assert_eq!((error.kind(), error.column()), (Kind::UnitTooFine, 8));
    assert_eq!(error.found(), "\u{b5}s");
    assert_eq!(error.expected(), "ms or a longer unit");

    let error = "5/401d".parse::<Quota>().unwrap_err();
    let period = Duration::from_secs(401 * 86_400);
    assert_eq!(
        error.kind(),
        Kind::Value(QuotaError::PeriodTooLong { period })
    );
    assert_eq!(error.found(), "401d");
}

#[test]
fn carets_stand_under_the_offending_part() {
    let pictures = [
        ("100/mont", "100/mont\n    ^^^^"),
        ("10/", "10/\n   ^"),
        ("", "\n^"),
        ("1/s;\t2/\u{301}x", "1/s; 2/\u{fffd}x\n       ^"),
        ("1/s;\n2/é", "1/s; 2/é\n       ^"),
    ];
    for (text, picture) in pictures {
        assert_eq!(
            text.parse::<QuotaList>().unwrap_err().caret(),
            picture,
            "{text:?}"
        );
    }
}

#[test]
fn carets_of_a_long_text_show_the_surroundings_only() {
    let text = format!("{}5/decade; {}", "1/s; ".repeat(20), "1/s; ".repeat(20));
    let error = text.parse::<QuotaList>().unwrap_err();
    assert_eq!(error.column(), 103);
    assert_eq!(
        error.caret(),
        "…s; 1/s; 1/s; 1/s; 1/s; 1/s; 1/s; 1/s; 5/decade; 1/s; 1/s; 1/s; 1/s; 1/s; 1/s; 1/…\n\
        \u{20}                                        ^^^^^^"
    );
}
