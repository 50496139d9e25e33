//! The text that the example shows, checked line by line.

#[path = "../examples/prometheus.rs"]
mod example;

use std::collections::BTreeMap;

/// Samples by name and labels, and the type of each metric.
fn read(text: &str) -> (BTreeMap<&str, &str>, BTreeMap<&str, &str>) {
    let lines = || text.lines().filter(|line| !line.is_empty());
    let types = lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' '));
    let samples = lines().filter(|line| !line.starts_with('#'));
    let samples = samples.filter_map(|line| line.rsplit_once(' '));
    (samples.collect(), types.collect())
}

const COUNTERS: [&str; 9] = [
    "tollgate_answers_total",
    "tollgate_calls_abandoned_total",
    "tollgate_degraded_total",
    "tollgate_errors_total",
    "tollgate_memory_evictions_total",
    "tollgate_memory_shared_judgements_total",
    "tollgate_near_limit_total",
    "tollgate_requests_total",
    "tollgate_shadow_denied_total",
];
const GAUGES: [&str; 3] = [
    "tollgate_memory_capacity_keys",
    "tollgate_memory_keys",
    "tollgate_memory_overflow_cells",
];

/// What is not zero, but for how long the calls took.
///
/// Five of ten hits are admitted in each of the first four seconds, and in the last of them the limit per minute is
/// used up. From then on the burst has room and the limit per minute has none.
const COUNTED: [(&str, &str); 15] = [
    (
        r#"tollgate_answers_total{store="memory",source="store"}"#,
        "61",
    ),
    (
        r#"tollgate_call_duration_seconds_bucket{store="memory",verb="hit",le="+Inf"}"#,
        "61",
    ),
    (
        r#"tollgate_call_duration_seconds_count{store="memory",verb="hit"}"#,
        "61",
    ),
    (
        r#"tollgate_memory_capacity_keys{store="memory"}"#,
        "1000000",
    ),
    (r#"tollgate_memory_keys{store="memory"}"#, "2"),
    (
        r#"tollgate_near_limit_total{store="memory",policy="burst"}"#,
        "4",
    ),
    (
        r#"tollgate_near_limit_total{store="memory",policy="sustained"}"#,
        "4",
    ),
    (
        r#"tollgate_requests_total{store="memory",policy="burst",outcome="allowed"}"#,
        "20",
    ),
    (
        r#"tollgate_requests_total{store="memory",policy="burst",outcome="denied"}"#,
        "20",
    ),
    (
        r#"tollgate_requests_total{store="memory",policy="burst",outcome="never"}"#,
        "1",
    ),
    (
        r#"tollgate_requests_total{store="memory",policy="burst",outcome="uncharged"}"#,
        "20",
    ),
    (
        r#"tollgate_requests_total{store="memory",policy="sustained",outcome="allowed"}"#,
        "20",
    ),
    (
        r#"tollgate_requests_total{store="memory",policy="sustained",outcome="denied"}"#,
        "25",
    ),
    // Fifteen that the burst denied while there was room, and the one that it never admits.
    (
        r#"tollgate_requests_total{store="memory",policy="sustained",outcome="uncharged"}"#,
        "16",
    ),
    (
        r#"tollgate_requests_total{store="memory",policy="sustained",outcome="never"}"#,
        "0",
    ),
];

#[test]
fn a_scrape_shows_the_scripted_traffic_exactly() {
    let text = example::scrape().unwrap();
    let (samples, types) = read(&text);

    let named = |kind| {
        let of_kind = types.iter().filter(move |(_, of)| **of == kind);
        of_kind.map(|(name, _)| *name).collect::<Vec<_>>()
    };
    assert_eq!(named("counter"), COUNTERS);
    assert_eq!(named("gauge"), GAUGES);
    assert_eq!(named("histogram"), ["tollgate_call_duration_seconds"]);

    for (name, value) in COUNTED {
        assert_eq!(samples.get(name), Some(&value), "{name}");
    }
    let timed = |name: &str| name.starts_with("tollgate_call_duration_seconds");
    let more = samples.iter().filter(|(name, value)| {
        **value != "0" && !timed(name) && !COUNTED.iter().any(|(known, _)| known == *name)
    });
    assert_eq!(more.collect::<Vec<_>>(), []);

    // There is one recorder for the process, so the example runs once.
    assert!(example::main().is_err());
}
