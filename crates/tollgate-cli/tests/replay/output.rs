//! Tables, drawings, help, and who reads them.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::program::{ALGORITHMS, line, lines, real_log, replay, report, stderr, stdout};

#[test]
fn the_table_names_algorithms_shares_and_the_worst_clients() {
    let log = real_log();
    let text = report(&["--policy", "10/minute", log.to_str().unwrap()], "");
    for algorithm in ALGORITHMS {
        assert!(text.contains(algorithm), "{text}");
    }
    let fixed_window: Vec<&str> = text
        .lines()
        .find(|line| line.contains("fixed-window"))
        .unwrap()
        .split_whitespace()
        .collect();
    assert_eq!(
        fixed_window[..7],
        ["10/minute", "fixed-window", "121", "79", "39.5", "%", "4"]
    );
    let worst: Vec<&str> = text
        .lines()
        .find(|line| line.contains("198.18.0.79"))
        .unwrap()
        .split_whitespace()
        .collect();
    assert_eq!(worst[2..], ["26", "26", "26", "17", "17", "17"]);
}

#[test]
fn a_drawing_is_well_formed_and_has_a_panel_for_every_run() {
    let folder = tempfile::tempdir().unwrap();
    let plot = folder.path().join("out.svg");
    let log = folder.path().join("a<b>&.log");
    fs::copy(real_log(), &log).unwrap();
    report(
        &[
            "--policy",
            "10/minute",
            "--plot",
            plot.to_str().unwrap(),
            log.to_str().unwrap(),
        ],
        "",
    );
    let drawing = fs::read_to_string(plot).unwrap();
    let document = roxmltree::Document::parse(&drawing).unwrap();
    let texts: Vec<&str> = document
        .descendants()
        .filter_map(|node| node.text())
        .collect();
    for algorithm in ALGORITHMS {
        assert!(
            texts.contains(&format!("{algorithm} 10/minute").as_str()),
            "{texts:?}"
        );
    }
    for text in [
        "Hits admitted and denied: a<b>&.log",
        "admitted",
        "17 May 2015",
        "time (UTC)",
    ] {
        assert!(texts.contains(&text), "{text}: {texts:?}");
    }
}

#[test]
fn a_drawing_that_cannot_be_written_does_not_lose_the_report() {
    let output = replay(
        &[
            "--policy",
            "10/minute",
            "--pattern",
            "steady",
            "--plot",
            "no/such/folder/out.svg",
        ],
        b"",
    );
    assert_eq!(output.status.code(), Some(1));
    assert!(stdout(&output).contains("gcra"));
    assert!(stderr(&output).starts_with("error: cannot write no/such/folder/out.svg: "));
}

#[test]
fn a_reader_that_stops_early_is_no_error() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_tollgate"))
        .args(["replay", "--policy", "10/minute", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The report is only written once the input ends, when nobody reads any more.
    drop(child.stdout.take());
    child
        .stdin
        .take()
        .unwrap()
        .write_all(lines("198.18.0.1", &[0]).as_bytes())
        .unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(
        (output.status.code(), stderr(&output).as_str()),
        (Some(0), "")
    );
}

#[test]
fn nothing_from_a_log_reaches_the_terminal_unescaped() {
    let input = line("198.18.0.1\u{1b}[31m", 0, "GET / HTTP/1.1").repeat(3) + "\u{1b}[2J\n";
    let output = replay(&["--policy", "1/minute", "-"], input.as_bytes());
    assert!(
        String::from_utf8(output.stdout.clone())
            .unwrap()
            .contains("198.18.0.1\\x1B[31m")
    );
    assert!(!output.stdout.contains(&0x1b) && !output.stderr.contains(&0x1b));
}

#[test]
fn the_readme_shows_what_the_program_prints() {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let readme = fs::read_to_string(package.join("README.md")).unwrap();
    let log = "crates/tollgate-cli/tests/data/access.log";
    let cases: [&[&str]; 2] = [
        &["replay", "--policy", "10/minute", "--algorithm", "all", log],
        &[
            "replay",
            "--policy",
            "10/minute",
            "--pattern",
            "boundary-burst",
        ],
    ];
    for arguments in cases {
        let output = Command::new(env!("CARGO_BIN_EXE_tollgate"))
            .args(arguments)
            .current_dir(package.join("../.."))
            .output()
            .unwrap();
        let printed = stdout(&output);
        assert!(
            readme.contains(&printed),
            "README.md does not show:\n{printed}"
        );
    }
}

#[test]
fn the_help_is_a_manual() {
    let output = replay(&["--help"], b"");
    assert_eq!(output.status.code(), Some(0));
    let text = stdout(&output);
    for part in [
        "Exit status:",
        "Memory:",
        "Log formats:",
        "Examples:",
        "--reorder-window",
        "request.client_ip",
    ] {
        assert!(text.contains(part), "{part}");
    }
}
