//! Input and command lines that are wrong.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::Value;

use crate::program::{counts, failure, lines, real_log, refusal, replay, stderr};

#[test]
fn malformed_lines_are_counted_shown_and_passed_over() {
    let mut input = lines("198.18.0.1", &[0, 1]);
    input.push_str("not a log line\n\n");
    for _ in 0..7 {
        input.push_str("more of it\n");
    }
    input.push_str(&lines("198.18.0.1", &[2]));
    let output = replay(
        &["--policy", "2/minute", "--algorithm", "gcra", "--json", "-"],
        input.as_bytes(),
    );
    assert_eq!(output.status.code(), Some(0));
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(counts(&found), [("gcra", 2, 1, 1)]);
    assert_eq!(found["source"]["malformed"], 8);
    assert_eq!(found["source"]["left_out"][0]["line"], 3);
    let warnings = stderr(&output);
    assert!(
        warnings.contains("warning: standard input:3: malformed: expected the user, then the time in brackets: not a log line"),
        "{warnings}"
    );
    assert!(
        warnings
            .contains("warning: standard input: 8 lines malformed, of which the first 5 are shown"),
        "{warnings}"
    );
    assert_eq!(warnings.lines().count(), 6);
}

#[test]
fn what_is_no_log_fails_with_the_reason() {
    let policy = ["--policy", "10/minute", "-"];
    let text = failure(&policy, &b"a poem\nof two lines\n".repeat(100));
    assert!(
        text.contains("standard input is not an access log: none of its first 100 lines"),
        "{text}"
    );
    assert!(text.contains("line 1: "), "{text}");

    let binary: Vec<u8> = (0..200_000_u32).flat_map(u32::to_le_bytes).collect();
    assert!(failure(&policy, &binary).contains("is not an access log"));
    assert!(failure(&policy, b"{\"a\":1}\n").contains("--time-field"));
    assert!(failure(&policy, b"").contains("standard input is empty"));
    let named = [&policy[..], &["--format", "json"]].concat();
    let text = failure(&named, lines("198.18.0.1", &[0; 300]).as_bytes());
    assert!(
        text.contains("none of its 300 lines is in the json format"),
        "{text}"
    );
}

#[test]
fn a_file_that_cannot_be_read_fails_with_its_name() {
    let text = failure(&["--policy", "10/minute", "no/such/file.log"], b"");
    assert!(text.contains("cannot open no/such/file.log: "), "{text}");
    let text = failure(&["--policy", "10/minute", env!("CARGO_MANIFEST_DIR")], b"");
    assert!(text.contains("cannot read "), "{text}");

    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder
        .write_all(lines("198.18.0.1", &[0; 1000]).as_bytes())
        .unwrap();
    let packed = encoder.finish().unwrap();
    let text = failure(
        &["--policy", "10/minute", "-"],
        &packed[..packed.len() - 10],
    );
    assert!(
        text.contains("cannot read standard input at line "),
        "{text}"
    );
}

#[test]
fn a_wrong_command_line_is_refused_with_what_would_be_right() {
    let log = real_log();
    let log = log.to_str().unwrap();
    let cases: [(&[&str], &str); 11] = [
        (&["--policy", "10/month", log], "column 4"),
        (
            &["--policy", "10/minute", "--algorithm", "token", log],
            "sliding-log, token-bucket",
        ),
        (
            &["--policy", "10/minute", "--key", "ip", log],
            "use address, path, header:NAME or field:NAME",
        ),
        (
            &["--policy", "10/minute", "--reorder-window", "60", log],
            "write it like 60s",
        ),
        (
            &["--policy", "10/minute", "--plot", "out.png", log],
            "ends in .svg",
        ),
        (&["--policy", "10/minute"], "<FILE>"),
        (
            &["--policy", "10/minute", "--pattern", "steady", log],
            "cannot be used with",
        ),
        (
            &[
                "--policy",
                "10/minute",
                "--pattern",
                "steady",
                "--key",
                "path",
            ],
            "cannot be used with",
        ),
        (
            &["--policy", "1000000000000/day", "--pattern", "steady"],
            "at most 10000000",
        ),
        (
            &[
                "--policy",
                "10/minute burst 20",
                "--algorithm",
                "fixed-window",
                log,
            ],
            "has no burst",
        ),
        (&[log], "--policy"),
    ];
    for (arguments, expected) in cases {
        let text = refusal(arguments);
        assert!(
            text.starts_with("error: ") && text.contains(expected),
            "{arguments:?}: {text}"
        );
    }
}

#[test]
fn a_key_that_the_format_never_has_is_refused() {
    let input = lines("198.18.0.1", &[0]);
    let text = failure(
        &["--policy", "1/minute", "--key", "header:x-api-key", "-"],
        input.as_bytes(),
    );
    assert!(
        text.contains("the common format has no header:x-api-key; its fields are address, "),
        "{text}"
    );
    let text = failure(
        &["--policy", "1/minute", "--cost-field", "price", "-"],
        input.as_bytes(),
    );
    assert!(
        text.contains("the common format has no field \"price\" for the cost"),
        "{text}"
    );
    let text = failure(
        &["--policy", "1/minute", "--key", "field:user", "-"],
        input.as_bytes(),
    );
    assert!(
        text.contains("none of the 1 lines of standard input can be played; line 1: no field:user"),
        "{text}"
    );
}
