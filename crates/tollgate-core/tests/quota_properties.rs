//! What holds for every legal quota and for every text.

use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use tollgate_core::{ParseQuotaError, Quota, QuotaError, QuotaList};

const LONGEST_PERIOD_MILLIS: u64 = 400 * 86_400_000;

fn limits() -> impl Strategy<Value = u64> {
    prop_oneof![0..=20_u64, of_any_size(), Just(Quota::MAX_LIMIT)]
}

/// Numbers up to the largest limit, those of every length equally likely.
fn of_any_size() -> impl Strategy<Value = u64> {
    (0..=12_u32).prop_flat_map(|digits| 1..=10_u64.pow(digits))
}

/// Legal periods, most of them whole numbers of some unit.
fn periods() -> impl Strategy<Value = Duration> {
    let unit_millis = select(vec![1, 1_000, 60_000, 3_600_000, 86_400_000, 604_800_000]);
    let counted = unit_millis.prop_flat_map(|unit: u64| {
        (1..=LONGEST_PERIOD_MILLIS / unit).prop_map(move |count| count * unit)
    });
    prop_oneof![counted, 1..=LONGEST_PERIOD_MILLIS].prop_map(Duration::from_millis)
}

fn quotas() -> impl Strategy<Value = Quota> {
    let burst = proptest::option::of(prop_oneof![1..=20_u64, of_any_size()]);
    (limits(), periods(), burst).prop_filter_map("too fine", |(limit, period, burst)| {
        let quota = unless_too_fine(Quota::new(limit, period))?;
        match burst {
            Some(burst) if limit > 0 => unless_too_fine(quota.with_burst(burst)),
            _ => Some(quota),
        }
    })
}

fn unless_too_fine(quota: Result<Quota, QuotaError>) -> Option<Quota> {
    match quota {
        Ok(quota) => Some(quota),
        Err(QuotaError::TooFine { .. }) => None,
        Err(error) => panic!("the numbers are in range: {error}"),
    }
}

/// Rows of words of the grammar and of its neighbours, most of them refused late.
fn nearly_quotas() -> impl Strategy<Value = String> {
    let tokens = select(vec![
        "0",
        "1",
        "60",
        "1000000000000",
        "18446744073709551615",
        "99999999999999999999",
        "/",
        "per",
        " ",
        "\t",
        "s",
        "minutes",
        "MS",
        "weeks",
        "month",
        "burst",
        ";",
        ",",
        "; ",
        ".",
        "-",
        "_",
        "\u{b5}s",
        "\u{661}",
        "\u{a0}",
        "é",
        "\u{301}",
        "😀",
    ]);
    vec(tokens, 0..14).prop_map(|tokens| tokens.concat())
}

/// Texts of legal lists with one character put in, replaced or taken out.
fn damaged_lists() -> impl Strategy<Value = String> {
    let put_in = proptest::option::of(any::<char>());
    (
        vec(quotas(), 1..4),
        any::<prop::sample::Index>(),
        0..=1_usize,
        put_in,
    )
        .prop_map(|(quotas, place, taken, put_in)| {
            let mut text: Vec<char> = list(quotas).to_string().chars().collect();
            let start = place.index(text.len());
            text.splice(start..start + taken, put_in);
            text.into_iter().collect()
        })
}

fn list(quotas: Vec<Quota>) -> QuotaList {
    QuotaList::try_from(quotas).expect("at least one quota")
}

/// The offending part stands at the column the error names, and the carets stand under it.
fn assert_points_at_its_cause(text: &str, error: &ParseQuotaError) {
    let start = error.column() - 1;
    let found = error.found().trim_end_matches('…');
    let rest: String = text.chars().skip(start).collect();
    assert!(rest.starts_with(found), "{text:?}: {error}");

    let picture = error.caret();
    let (shown, carets) = picture.split_once('\n').expect("two lines");
    let indent = carets.chars().take_while(|&next| next == ' ').count();
    if found
        .chars()
        .all(|next| next.is_ascii_graphic() || next == ' ')
    {
        let above: String = shown.chars().skip(indent).collect();
        assert!(above.starts_with(found), "{picture}");
    }
    assert!(indent <= shown.chars().count(), "{picture}");
}

fn assert_reads_or_points(text: &str) {
    match text.parse::<Quota>() {
        Ok(quota) => {
            assert_eq!(quota.to_string().parse(), Ok(quota));
            assert_eq!(text.parse(), Ok(QuotaList::from(quota)));
        }
        Err(error) => assert_points_at_its_cause(text, &error),
    }
    match text.parse::<QuotaList>() {
        Ok(list) => assert_eq!(list.to_string().parse(), Ok(list)),
        Err(error) => assert_points_at_its_cause(text, &error),
    }
}

/// Whether some tick divides the period and keeps `limit` units, each `ticks / gcd(limit, ticks)` heavy, within 2^52.
fn is_countable(limit: u64, period_micros: u64) -> bool {
    let ticks = (0..=6).map(|zeros| 10_u64.pow(zeros));
    ticks
        .filter(|tick| period_micros.is_multiple_of(*tick))
        .any(|tick| {
            let ticks = period_micros / tick;
            let common = u128::from(gcd(limit, ticks));
            u128::from(limit) * u128::from(ticks) <= common << 52
        })
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn the_canonical_form_of_every_quota_parses_back(quota in quotas()) {
        prop_assert_eq!(quota.to_string().parse(), Ok(quota));
    }

    #[test]
    fn the_canonical_form_of_every_list_parses_back(quotas in vec(quotas(), 1..6)) {
        let list = list(quotas);
        prop_assert_eq!(list.to_string().parse(), Ok(list));
    }

    #[test]
    fn the_canonical_form_survives_any_case_and_doubled_spaces(quota in quotas()) {
        let shouted = quota.to_string().to_ascii_uppercase().replace(' ', "  ");
        prop_assert_eq!(shouted.parse(), Ok(quota));
    }

    #[test]
    fn any_text_is_read_or_refused_at_its_cause(text in any::<String>()) {
        assert_reads_or_points(&text);
    }

    #[test]
    fn nearly_a_quota_is_read_or_refused_at_its_cause(text in nearly_quotas()) {
        assert_reads_or_points(&text);
    }

    #[test]
    fn a_damaged_list_is_read_or_refused_at_its_cause(text in damaged_lists()) {
        assert_reads_or_points(&text);
    }

    #[test]
    fn a_constructor_takes_exactly_the_legal_numbers(
        limit in prop_oneof![limits(), any::<u64>()],
        nanos in prop_oneof![0..=2_000_000_u64, 0..=LONGEST_PERIOD_MILLIS * 1_000_000, any::<u64>()],
    ) {
        let legal = limit <= 1_000_000_000_000
            && (1_000_000..=34_560_000_000_000_000).contains(&nanos)
            && nanos.is_multiple_of(1_000_000);
        match Quota::new(limit, Duration::from_nanos(nanos)) {
            Err(QuotaError::TooFine { .. }) => prop_assert!(legal && !is_countable(limit, nanos / 1_000)),
            Ok(quota) => {
                prop_assert!(legal && is_countable(limit, nanos / 1_000));
                prop_assert_eq!(quota.limit(), limit);
                prop_assert_eq!(quota.period(), Duration::from_nanos(nanos));
                prop_assert_eq!(quota.period_micros() * 1_000, nanos);
            }
            Err(_) => prop_assert!(!legal),
        }
    }
}
