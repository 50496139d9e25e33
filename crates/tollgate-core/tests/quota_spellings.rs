//! Every spelling that is read as a quota, and what it means.

use std::time::Duration;

use tollgate_core::{Quota, QuotaList};

const MINUTE: u64 = 60_000;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;
const WEEK: u64 = 7 * DAY;

fn quota(limit: u64, millis: u64) -> Quota {
    Quota::new(limit, Duration::from_millis(millis)).expect("a legal quota")
}

fn parse(text: &str) -> Quota {
    text.parse()
        .unwrap_or_else(|error| panic!("{text:?}: {error}"))
}

#[test]
fn every_spelling_of_the_documentation_is_read() {
    let spellings = [
        ("100/minute", quota(100, MINUTE)),
        ("10/15seconds", quota(10, 15_000)),
        ("10/15 seconds", quota(10, 15_000)),
        ("100 per 2 minutes", quota(100, 2 * MINUTE)),
        ("5/s", quota(5, 1_000)),
        ("1 / Second", quota(1, 1_000)),
        ("1/2 day", quota(1, 172_800_000)),
        ("1 per 3 hour", quota(1, 10_800_000)),
        ("0/minute", quota(0, MINUTE)),
        ("10/ms", quota(10, 1)),
        ("3/1500 ms", quota(3, 1_500)),
        ("1/week", quota(1, WEEK)),
        ("1/400 days", quota(1, 400 * DAY)),
        ("1/34560000000 milliseconds", quota(1, 400 * DAY)),
        ("1000000000000/s", quota(1_000_000_000_000, 1_000)),
        ("300000000/s", quota(300_000_000, 1_000)),
        ("999983/day", quota(999_983, DAY)),
    ];
    for (text, expected) in spellings {
        assert_eq!(parse(text), expected, "{text}");
    }
}

#[test]
fn every_name_of_a_unit_is_read_in_any_case_with_and_without_a_count() {
    let units: [(u64, &[&str]); 6] = [
        (1, &["ms", "millisecond", "milliseconds"]),
        (1_000, &["s", "sec", "secs", "second", "seconds"]),
        (MINUTE, &["m", "min", "mins", "minute", "minutes"]),
        (HOUR, &["h", "hr", "hrs", "hour", "hours"]),
        (DAY, &["d", "day", "days"]),
        (WEEK, &["w", "week", "weeks"]),
    ];
    for (millis, names) in units {
        for name in names {
            let upper = name.to_ascii_uppercase();
            let capital = format!("{}{}", &upper[..1], &name[1..]);
            for spelling in [*name, &upper, &capital] {
                assert_eq!(parse(&format!("7/{spelling}")), quota(7, millis));
                assert_eq!(parse(&format!("7/3{spelling}")), quota(7, 3 * millis));
                assert_eq!(parse(&format!("7 PER 3 {spelling}")), quota(7, 3 * millis));
            }
        }
    }
}

#[test]
fn whitespace_may_stand_between_any_two_words_numbers_and_signs() {
    let expected = quota(20, 2_000).with_burst(100).unwrap();
    let spellings = [
        "20/2s burst 100",
        "20/2s burst100",
        "20per2s burst 100",
        "20 per 2 s burst 100",
        " 20 / 2 s  burst  100 ",
        "\t20\n/\r\n2\ts\nBURST\n100\n",
    ];
    for text in spellings {
        assert_eq!(parse(text), expected, "{text:?}");
    }
}

#[test]
fn a_burst_may_be_smaller_or_larger_than_the_limit() {
    assert_eq!(parse("20/s burst 100").capacity(), 100);
    assert_eq!(parse("20/s burst 1").capacity(), 1);
    assert_eq!(parse("1/week burst 1000000000").capacity(), 1_000_000_000);
    assert_eq!(
        parse("1/s burst 1000000000000").capacity(),
        1_000_000_000_000
    );
}

#[test]
fn a_burst_equal_to_the_limit_is_no_burst() {
    assert_eq!(parse("20/s burst 20"), Quota::per_second(20));
    assert_eq!(parse("20/s burst 20").to_string(), "20/second");
}

#[test]
fn the_canonical_form_uses_the_longest_unit_that_divides_the_period() {
    let forms = [
        ("1/ms", "1/ms"),
        ("1/999ms", "1/999 ms"),
        ("1/1000ms", "1/second"),
        ("1/1001ms", "1/1001 ms"),
        ("1/59s", "1/59 seconds"),
        ("1/60s", "1/minute"),
        ("1/90m", "1/90 minutes"),
        ("1/24h", "1/day"),
        ("1/36h", "1/36 hours"),
        ("1/7d", "1/week"),
        ("1/14d", "1/2 weeks"),
        ("1/400d", "1/400 days"),
        ("0/hr", "0/hour"),
        ("20 PER SEC BURST 100", "20/second burst 100"),
    ];
    for (text, canonical) in forms {
        assert_eq!(parse(text).to_string(), canonical, "{text}");
        assert_eq!(parse(canonical), parse(text), "{canonical}");
    }
}

#[test]
fn a_list_is_separated_by_semicolons_or_commas() {
    let expected = [Quota::per_second(10), Quota::per_hour(1_000)];
    let spellings = [
        "10/second; 1000/hour",
        "10/second;1000/hour",
        "10/second, 1000/hour",
        "10/second,1000/hour",
        " 10 per second\n,\n1000 per hour ",
    ];
    for text in spellings {
        let list: QuotaList = text.parse().unwrap();
        assert_eq!(list.as_slice(), expected, "{text:?}");
        assert_eq!(list.to_string(), "10/second; 1000/hour");
    }
}

#[test]
fn a_list_keeps_order_repetitions_and_bursts() {
    let list: QuotaList = "1 per 3 hour; 20/s burst 5, 1 per second; 1 per second"
        .parse()
        .unwrap();
    assert_eq!(
        list.to_string(),
        "1/3 hours; 20/second burst 5; 1/second; 1/second"
    );
    assert_eq!(list.iter().count(), 4);
    assert_eq!(list.clone().into_iter().count(), 4);
    assert_eq!((&list).into_iter().count(), 4);
}

#[test]
fn a_single_quota_is_a_list_of_one() {
    let list: QuotaList = "100/minute".parse().unwrap();
    assert_eq!(list, QuotaList::from(Quota::per_minute(100)));
    assert_eq!(list.to_string(), "100/minute");
}
