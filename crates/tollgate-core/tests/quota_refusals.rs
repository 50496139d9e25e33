//! Every text that is refused as a quota, with the whole message.

use tollgate_core::{Quota, QuotaList};

const UNITS: &str = "one of second, minute, hour, day, week or ms";

fn refusal(text: &str) -> String {
    match text.parse::<Quota>() {
        Ok(quota) => panic!("{text:?} was read as {quota}"),
        Err(error) => error.to_string(),
    }
}

fn list_refusal(text: &str) -> String {
    match text.parse::<QuotaList>() {
        Ok(list) => panic!("{text:?} was read as {list}"),
        Err(error) => error.to_string(),
    }
}

fn assert_refusals(refusals: &[(&str, &str)]) {
    for (text, message) in refusals {
        assert_eq!(refusal(text), *message, "{text:?}");
        assert_eq!(list_refusal(text), *message, "as a list: {text:?}");
    }
}

#[test]
fn a_text_without_a_quota_is_refused() {
    assert_refusals(&[
        (
            "",
            "column 1: no quota given; expected a quota such as 100/minute",
        ),
        (
            " \t\n",
            "column 1: no quota given; expected a quota such as 100/minute",
        ),
        (
            "None",
            "column 1: unexpected \"None\"; expected a limit such as the 100 of 100/minute",
        ),
        (
            "meow",
            "column 1: unexpected \"meow\"; expected a limit such as the 100 of 100/minute",
        ),
        (
            "/minute",
            "column 1: unexpected \"/\"; expected a limit such as the 100 of 100/minute",
        ),
        (
            "  per hour",
            "column 3: unexpected \"per\"; expected a limit such as the 100 of 100/minute",
        ),
        (
            "\u{feff}1/s",
            "column 1: unexpected \"\\u{feff}\"; expected a limit such as the 100 of 100/minute",
        ),
    ]);
}

#[test]
fn a_text_that_ends_early_is_refused_behind_its_last_column() {
    assert_refusals(&[
        (
            "10",
            "column 3: unexpected end of the text; expected \"/\" or \"per\"",
        ),
        (
            "10 ",
            "column 4: unexpected end of the text; expected \"/\" or \"per\"",
        ),
        (
            "10/",
            "column 4: unexpected end of the text; expected a period such as minute or 15 seconds",
        ),
        (
            "10 per",
            "column 7: unexpected end of the text; expected a period such as minute or 15 seconds",
        ),
        (
            "10/15",
            &format!("column 6: unexpected end of the text; expected {UNITS}"),
        ),
        (
            "10/s burst",
            "column 11: unexpected end of the text; expected a burst such as the 100 of burst 100",
        ),
    ]);
}

#[test]
fn an_unknown_unit_is_refused_with_the_known_ones() {
    assert_refusals(&[
        (
            "100/mont",
            &format!("column 5: unknown unit \"mont\"; expected {UNITS}"),
        ),
        (
            "1 per millenium",
            &format!("column 7: unknown unit \"millenium\"; expected {UNITS}"),
        ),
        (
            "1/2 fortnights",
            &format!("column 5: unknown unit \"fortnights\"; expected {UNITS}"),
        ),
        (
            "10/burst 5",
            &format!("column 4: unknown unit \"burst\"; expected {UNITS}"),
        ),
        (
            "10/per second",
            &format!("column 4: unknown unit \"per\"; expected {UNITS}"),
        ),
        (
            "10/\u{17f}",
            &format!("column 4: unknown unit \"\u{17f}\"; expected {UNITS}"),
        ),
        (
            "10/sburst 5",
            &format!("column 4: unknown unit \"sburst\"; expected {UNITS}"),
        ),
        (
            "10/15 / s",
            &format!("column 7: unexpected \"/\"; expected {UNITS}"),
        ),
    ]);
}

#[test]
fn months_and_years_are_refused_with_a_fixed_length_instead() {
    assert_refusals(&[
        (
            "100/month",
            "column 5: unit \"month\" has no fixed length; expected a fixed length such as 30 days",
        ),
        (
            "1 per 2 Months",
            "column 9: unit \"Months\" has no fixed length; expected a fixed length such as 30 days",
        ),
        (
            "1/mo",
            "column 3: unit \"mo\" has no fixed length; expected a fixed length such as 30 days",
        ),
        (
            "100/year",
            "column 5: unit \"year\" has no fixed length; expected a fixed length such as 365 days",
        ),
        (
            "1/YRS",
            "column 3: unit \"YRS\" has no fixed length; expected a fixed length such as 365 days",
        ),
    ]);
}

#[test]
fn units_below_a_millisecond_are_refused() {
    for unit in [
        "us",
        "\u{b5}s",
        "\u{3bc}s",
        "microseconds",
        "ns",
        "nanosecond",
    ] {
        let message = format!("column 6: unit {unit:?} is too short; expected ms or a longer unit");
        assert_eq!(refusal(&format!("1/500{unit}")), message);
    }
}

#[test]
fn a_number_is_refused_unless_it_is_made_of_plain_digits() {
    let fraction =
        "is not a whole number; expected a whole number, as in 3/2 seconds for 1.5/second";
    let comma = "expected digits only, or a space after a comma that ends a quota";
    assert_refusals(&[
        (
            "-1/s",
            "column 1: sign \"-\" in place of a digit; expected digits only",
        ),
        (
            "+1/s",
            "column 1: sign \"+\" in place of a digit; expected digits only",
        ),
        (
            "1/-5 s",
            "column 3: sign \"-\" in place of a digit; expected digits only",
        ),
        (
            "1/s burst \u{2212}5",
            "column 11: sign \"\u{2212}\" in place of a digit; expected digits only",
        ),
        ("1.5/s", &format!("column 1: \"1.5\" {fraction}")),
        (".5/s", &format!("column 1: \".5\" {fraction}")),
        ("10/0.5 s", &format!("column 4: \"0.5\" {fraction}")),
        (
            "1/s burst 1.0.0",
            &format!("column 11: \"1.0.0\" {fraction}"),
        ),
        (
            "1_000/s",
            "column 1: separator between the digits of \"1_000\"; expected digits only",
        ),
        (
            "1'000/s",
            "column 1: separator between the digits of \"1'000\"; expected digits only",
        ),
        (
            "1,000/s",
            &format!("column 1: separator between the digits of \"1,000\"; {comma}"),
        ),
        (
            "1/s burst 5,30/m",
            &format!("column 11: separator between the digits of \"5,30\"; {comma}"),
        ),
        (
            "1 000/s",
            "column 3: unexpected \"000\"; expected \"/\" or \"per\"",
        ),
        (
            "007/s",
            "column 1: leading zero in \"007\"; expected a number that begins with 1 to 9",
        ),
        (
            "1/05 s",
            "column 3: leading zero in \"05\"; expected a number that begins with 1 to 9",
        ),
        (
            "00/s",
            "column 1: leading zero in \"00\"; expected a number that begins with 1 to 9",
        ),
        (
            "\u{661}/s",
            "column 1: unexpected digit \"\u{661}\"; expected the digits 0 to 9",
        ),
        (
            "1\u{661}/s",
            "column 2: unexpected digit \"\u{661}\"; expected the digits 0 to 9",
        ),
        (
            "1/\u{ff15}s",
            "column 3: unexpected digit \"\u{ff15}\"; expected the digits 0 to 9",
        ),
        (
            "\u{bd}/s",
            "column 1: unexpected digit \"\u{bd}\"; expected the digits 0 to 9",
        ),
        (
            "1e3/s",
            "column 2: unexpected \"e\"; expected \"/\" or \"per\"",
        ),
        (
            "0x10/s",
            "column 2: unexpected \"x\"; expected \"/\" or \"per\"",
        ),
        (
            "10k/s",
            "column 3: unexpected \"k\"; expected \"/\" or \"per\"",
        ),
        (
            ",5/s",
            "column 1: unexpected \",\"; expected a limit such as the 100 of 100/minute",
        ),
        (
            "5./s",
            "column 2: unexpected \".\"; expected \"/\" or \"per\"",
        ),
    ]);
}

#[test]
fn a_value_out_of_range_is_refused_where_it_stands() {
    assert_refusals(&[
        (
            "1000000000001/s",
            "column 1: limit 1000000000001 is too large; expected at most 1000000000000",
        ),
        ("1/0s", "column 3: period is zero; expected at least 1 ms"),
        (
            "1 per 0 weeks",
            "column 7: period is zero; expected at least 1 ms",
        ),
        (
            "1/401 days",
            "column 3: period 34646400s is too long; expected at most 400 days (34560000s)",
        ),
        (
            "1/34560000001 ms",
            "column 3: period 34560000.001s is too long; expected at most 400 days (34560000s)",
        ),
        (
            "1/s burst 0",
            "column 11: burst is zero; expected at least 1, or limit 0 to block everything",
        ),
        (
            "1/s burst 1000000000001",
            "column 11: burst 1000000000001 is too large; expected at most 1000000000000",
        ),
        (
            "0/s burst 5",
            "column 11: limit 0 blocks everything and cannot have a burst; expected no burst, or a limit of at least 1",
        ),
    ]);
}

#[test]
fn a_number_of_any_length_is_refused_without_overflow() {
    let huge = "18446744073709551616";
    assert_refusals(&[
        (
            &format!("{huge}/s"),
            &format!(
                "column 1: number {huge} is too large; expected a limit of at most 1000000000000"
            ),
        ),
        (
            &format!("1/{huge} s"),
            &format!("column 3: number {huge} is too large; expected a period of at most 400 days"),
        ),
        (
            "1/18446744073709551615 weeks",
            "column 3: number 18446744073709551615 is too large; expected a period of at most 400 days",
        ),
        (
            &format!("1/s burst {huge}"),
            &format!(
                "column 11: number {huge} is too large; expected a burst of at most 1000000000000"
            ),
        ),
    ]);
    let nines = "9".repeat(100_000);
    let message = format!(
        "column 1: number {}… is too large; expected a limit of at most 1000000000000",
        &nines[..40]
    );
    assert_eq!(refusal(&format!("{nines}/s")), message);
}

#[test]
fn other_signs_and_words_are_refused() {
    assert_refusals(&[
        (
            "10 minutes",
            "column 4: unexpected \"minutes\"; expected \"/\" or \"per\"",
        ),
        (
            "10 requests per minute",
            "column 4: unexpected \"requests\"; expected \"/\" or \"per\"",
        ),
        (
            "10persecond",
            "column 3: unexpected \"persecond\"; expected \"/\" or \"per\"",
        ),
        (
            "10//s",
            "column 4: unexpected \"/\"; expected a period such as minute or 15 seconds",
        ),
        (
            "10\u{a0}/s",
            "column 3: unexpected \"\\u{a0}\"; expected \"/\" or \"per\"",
        ),
        (
            "10\u{2044}s",
            "column 3: unexpected \"\u{2044}\"; expected \"/\" or \"per\"",
        ),
        (
            "10/m s",
            "column 6: unexpected \"s\"; expected \"burst\" or the end of the quota",
        ),
        (
            "10/s per user",
            "column 6: unexpected \"per\"; expected \"burst\" or the end of the quota",
        ),
        (
            "10/s burst=5",
            "column 11: unexpected \"=\"; expected a burst such as the 100 of burst 100",
        ),
        (
            "é0/s",
            "column 1: unexpected \"é\"; expected a limit such as the 100 of 100/minute",
        ),
    ]);
}

#[test]
fn what_follows_a_quota_is_refused() {
    let refusals = [
        ("1/1h30m", "column 5: unexpected \"30\"; expected"),
        ("10/s/", "column 5: unexpected \"/\"; expected"),
        ("10/s.", "column 5: unexpected \".\"; expected"),
        (
            "10/s burst 5 burst 6",
            "column 14: unexpected \"burst\"; expected",
        ),
        ("10/s burst 5.", "column 13: unexpected \".\"; expected"),
        ("10/s\n20/s", "column 6: unexpected \"20\"; expected"),
    ];
    for (text, message) in refusals {
        assert_eq!(refusal(text), format!("{message} the end of the text"));
        assert_eq!(
            list_refusal(text),
            format!("{message} \";\" or the end of the text")
        );
    }
}

#[test]
fn a_list_is_refused_where_one_quota_belongs() {
    assert_eq!(
        refusal("10/second; 1000/hour"),
        "column 10: \";\" leads to a second quota; expected one quota only"
    );
    assert_eq!(
        refusal("10/s ,"),
        "column 6: \",\" leads to a second quota; expected one quota only"
    );
}

#[test]
fn a_list_is_refused_at_a_column_of_the_whole_text() {
    let trailing = "expected another quota, or no separator at the end";
    let limit = "expected a limit such as the 100 of 100/minute";
    let refusals = [
        (
            "10/second;",
            format!("column 10: no quota after \";\"; {trailing}"),
        ),
        (
            "10/second, 5/m , ",
            format!("column 16: no quota after \",\"; {trailing}"),
        ),
        (";10/s", format!("column 1: unexpected \";\"; {limit}")),
        (";", format!("column 1: unexpected \";\"; {limit}")),
        ("10/s;;5/m", format!("column 6: unexpected \";\"; {limit}")),
        (
            "10/s; meow",
            format!("column 7: unexpected \"meow\"; {limit}"),
        ),
        (
            "1 per yearl; 2 per decade",
            format!("column 7: unknown unit \"yearl\"; expected {UNITS}"),
        ),
        (
            "1 per day; 2 per decade",
            format!("column 18: unknown unit \"decade\"; expected {UNITS}"),
        ),
        (
            "10/ms, 5/0s",
            "column 10: period is zero; expected at least 1 ms".to_owned(),
        ),
    ];
    for (text, message) in refusals {
        assert_eq!(list_refusal(text), message, "{text:?}");
    }
}
