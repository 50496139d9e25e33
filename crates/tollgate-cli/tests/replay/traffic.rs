//! What traffic comes to under policies, algorithms and keys.

use std::fs;
use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::Value;

use crate::program::{ALGORITHMS, counts, json, line, lines, real_log, replay, report, stderr};

/// Computed once more by a separate program in exact fractions, straight from the definitions of the algorithms.
#[test]
fn a_real_log_is_played_under_all_algorithms() {
    let log = real_log();
    let arguments = [
        "--policy",
        "10/minute",
        "--algorithm",
        "all",
        "--key",
        "address",
        log.to_str().unwrap(),
    ];
    let found = json(&arguments, "");
    let expected = [
        ("fixed-window", 121, 79, 4),
        ("sliding-window", 121, 79, 4),
        ("sliding-log", 121, 79, 4),
        ("token-bucket", 154, 46, 3),
        ("leaky-bucket", 154, 46, 3),
        ("gcra", 154, 46, 3),
    ];
    assert_eq!(counts(&found), expected);
    assert_eq!(found["source"]["format"], "combined");
    for result in found["results"].as_array().unwrap() {
        assert_eq!(result["policy"], "10/minute");
        assert_eq!(result["worst"][0]["subject"], "198.18.0.79");
    }
    assert_eq!(found["results"][0]["worst"][0]["denied"], 26);
    assert_eq!(found["results"][5]["worst"][0]["denied"], 17);
}

#[test]
fn file_pipe_and_gzip_tell_the_same() {
    let log = real_log();
    let plain = fs::read(&log).unwrap();
    let mut packed = Vec::new();
    for half in plain.chunks(plain.len() / 2) {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(half).unwrap();
        packed.extend(encoder.finish().unwrap());
    }
    let from_file = json(&["--policy", "10/minute", log.to_str().unwrap()], "");
    for input in [plain, packed] {
        let output = replay(&["--policy", "10/minute", "--json", "-"], &input);
        let from_pipe: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(from_pipe["results"], from_file["results"]);
    }
}

/// The table in the documentation: 10 per minute; 1, 9 and 10 hits at 0, 59 and 61 seconds.
#[test]
fn the_boundary_burst_shows_how_the_algorithms_differ() {
    let found = json(
        &[
            "--policy",
            "10/minute",
            "--algorithm",
            "all",
            "--pattern",
            "boundary-burst",
        ],
        "",
    );
    for result in found["results"].as_array().unwrap() {
        let moments = result["moments"].as_array().unwrap();
        let at: Vec<u64> = moments
            .iter()
            .map(|moment| moment["at_micros"].as_u64().unwrap())
            .collect();
        assert_eq!(at, [0, 59_000_000, 61_000_000]);
        let admitted: Vec<u64> = moments
            .iter()
            .map(|moment| moment["admitted"].as_u64().unwrap())
            .collect();
        let last = if result["algorithm"] == "fixed-window" {
            10
        } else {
            1
        };
        assert_eq!(admitted, [1, 9, last], "{}", result["algorithm"]);
    }
    let table = report(
        &["--policy", "10/minute", "--pattern", "boundary-burst"],
        "",
    );
    assert!(table.contains("Admitted at each moment"), "{table}");
}

#[test]
fn every_pattern_plays_under_every_algorithm() {
    for pattern in ["boundary-burst", "steady", "bursty", "flood"] {
        let found = json(&["--policy", "7/second", "--pattern", pattern], "");
        let hits = found["hits"].as_u64().unwrap();
        for (algorithm, admitted, denied, _) in counts(&found) {
            assert_eq!(admitted + denied, hits, "{pattern} {algorithm}");
        }
    }
}

#[test]
fn a_burst_is_played_under_the_algorithms_that_have_one() {
    let input = lines("198.18.0.1", &[0, 0, 0, 0]);
    let output = replay(
        &["--policy", "2/minute burst 3", "--json", "-"],
        input.as_bytes(),
    );
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        counts(&found),
        [
            ("token-bucket", 3, 1, 1),
            ("leaky-bucket", 3, 1, 1),
            ("gcra", 3, 1, 1)
        ]
    );
    let warnings = stderr(&output);
    for algorithm in &ALGORITHMS[..3] {
        let expected = format!("warning: 2/minute burst 3 is not played under {algorithm}: ");
        assert!(warnings.contains(&expected), "{warnings}");
    }
}

#[test]
fn policies_and_algorithms_stand_side_by_side() {
    let input = lines("198.18.0.1", &[0, 0, 0, 0, 0]);
    let arguments = [
        "--policy",
        "1/minute",
        "--policy",
        "3 per 60 s",
        "--algorithm",
        "gcra,fixed-window",
        "-",
    ];
    let found = json(&arguments, &input);
    let policies: Vec<&str> = found["results"]
        .as_array()
        .unwrap()
        .iter()
        .map(|result| result["policy"].as_str().unwrap())
        .collect();
    assert_eq!(policies, ["1/minute", "1/minute", "3/minute", "3/minute"]);
    let expected = [
        ("fixed-window", 1, 4, 1),
        ("gcra", 1, 4, 1),
        ("fixed-window", 3, 2, 1),
        ("gcra", 3, 2, 1),
    ];
    assert_eq!(counts(&found), expected);
}

/// Two hits pass in the first second. In the next, one more fits into the minute: had the denied hits been charged to
/// it, none would.
#[test]
fn quotas_of_one_policy_are_charged_together_or_not_at_all() {
    let input = lines("198.18.0.1", &[0, 0, 0, 0, 2, 2]);
    let found = json(
        &[
            "--policy",
            "2/second; 3/minute",
            "--algorithm",
            "fixed-window,sliding-log",
            "-",
        ],
        &input,
    );
    assert_eq!(
        counts(&found),
        [("fixed-window", 3, 3, 1), ("sliding-log", 3, 3, 1)]
    );
}

#[test]
fn clients_have_counters_of_their_own_under_every_kind_of_key() {
    let input = [
        line("198.18.0.1", 0, "GET /a?x=1 HTTP/1.1"),
        line("198.18.0.2", 0, "GET /a?x=2 HTTP/1.1"),
        line("198.18.0.2", 0, "GET /b HTTP/1.1"),
        line("198.18.0.2", 0, "POST /b HTTP/1.1"),
    ]
    .concat();
    let cases = [
        ("address", 2, 2),
        ("path", 2, 2),
        ("address,path", 3, 1),
        ("field:method", 2, 2),
    ];
    for (key, subjects, denied) in cases {
        let found = json(
            &[
                "--policy",
                "1/minute",
                "--algorithm",
                "gcra",
                "--key",
                key,
                "-",
            ],
            &input,
        );
        assert_eq!(found["subjects"], subjects, "{key}");
        assert_eq!(found["results"][0]["denied"], denied, "{key}");
    }
}

#[test]
fn json_lines_have_named_fields_header_keys_and_costs() {
    let input = r#"
{"when": 1431857103.000001, "who": "a", "request": {"headers": {"X-Api-Key": ["k1"]}}, "price": 2}
{"when": 1431857103.000002, "who": "b", "request": {"headers": {"X-Api-Key": ["k1"]}}, "price": 2}
{"when": 1431857103.000003, "who": "b", "request": {"headers": {"X-Api-Key": ["k2"]}}, "price": 3}
{"when": 1431857103.000004, "who": "b", "request": {"headers": {}}, "price": 1}
{"when": 1431857103.000005, "who": "b", "request": {"headers": {"X-Api-Key": ["k2"]}}, "price": 0}
"#;
    let arguments = [
        "--policy",
        "3/minute",
        "--algorithm",
        "sliding-log",
        "--time-field",
        "when",
        "--key",
        "header:x-api-key",
        "--cost-field",
        "price",
        "--json",
        "-",
    ];
    let output = replay(&arguments, input.as_bytes());
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(counts(&found), [("sliding-log", 2, 1, 1)]);
    assert_eq!(found["results"][0]["admitted_units"], 5);
    assert_eq!(found["first"], "2015-05-17T10:05:03.000001Z");
    assert_eq!(
        (
            &found["source"]["without_key"],
            &found["source"]["without_cost"]
        ),
        (&1.into(), &1.into())
    );
    let warnings = stderr(&output);
    assert!(
        warnings.contains("standard input:5: without the key: no header:x-api-key"),
        "{warnings}"
    );
    assert!(
        warnings.contains("standard input:6: without a cost: the cost \"0\""),
        "{warnings}"
    );
}

#[test]
fn disorder_within_the_window_changes_nothing_and_beyond_it_is_reported() {
    let sorted = lines("198.18.0.1", &[0, 30, 40, 60, 80]);
    let shuffled = lines("198.18.0.1", &[0, 40, 80, 30, 60]);
    let arguments = ["--policy", "1/30s", "--algorithm", "all", "-"];
    let in_order = json(&arguments, &sorted);
    assert_eq!(json(&arguments, &shuffled)["results"], in_order["results"]);

    let narrow = [&arguments[..], &["--reorder-window", "10s"]].concat();
    let found = json(&narrow, &shuffled);
    assert_eq!(found["source"]["late"], 1);
    assert_eq!(found["hits"], 5);
    let text = report(&narrow, &shuffled);
    assert!(
        text.contains("played 1 hit at a later time than the log says, out of order by up to 50s"),
        "{text}"
    );
}
