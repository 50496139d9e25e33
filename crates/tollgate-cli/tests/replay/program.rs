//! Runs the program and reads what it says.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

pub(crate) const ALGORITHMS: [&str; 6] = [
    "fixed-window",
    "sliding-window",
    "sliding-log",
    "token-bucket",
    "leaky-bucket",
    "gcra",
];

pub(crate) fn real_log() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/access.log")
}

/// Runs `tollgate replay` with `arguments`, `input` on its standard input.
pub(crate) fn replay(arguments: &[&str], input: &[u8]) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_tollgate"))
        .arg("replay")
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut stdin = child.stdin.take().expect("its standard input is a pipe");
    // A program that refuses its command line reads nothing.
    let _ = stdin.write_all(input);
    drop(stdin);
    child.wait_with_output().expect("the program ends")
}

/// What it prints if all is well.
pub(crate) fn report(arguments: &[&str], input: &str) -> String {
    let output = replay(arguments, input.as_bytes());
    assert_eq!(stderr(&output), "");
    assert_eq!(output.status.code(), Some(0));
    stdout(&output)
}

/// What it reports in JSON if all is well.
pub(crate) fn json(arguments: &[&str], input: &str) -> Value {
    let arguments = [arguments, &["--json"]].concat();
    serde_json::from_str(&report(&arguments, input)).expect("the report is JSON")
}

pub(crate) fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("the output is UTF-8")
}

pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).expect("the output is UTF-8")
}

/// The one line that it ends with where it cannot do its work.
pub(crate) fn failure(arguments: &[&str], input: &[u8]) -> String {
    let output = replay(arguments, input);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert_eq!(output.stdout, b"");
    let message = stderr(&output);
    assert!(
        message.starts_with("error: ") && message.lines().count() == 1,
        "{message}"
    );
    message
}

/// What it says to a command line that is wrong.
pub(crate) fn refusal(arguments: &[&str]) -> String {
    let output = replay(arguments, b"");
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert_eq!(output.stdout, b"");
    stderr(&output)
}

/// Admitted, denied and subjects denied of every result.
pub(crate) fn counts(report: &Value) -> Vec<(&str, u64, u64, u64)> {
    let results = report["results"].as_array().expect("results are an array");
    let number =
        |result: &Value, name: &str| result[name].as_u64().expect("counts are whole numbers");
    let counts = results.iter().map(|result| {
        let algorithm = result["algorithm"].as_str().expect("algorithms have names");
        let (admitted, denied) = (number(result, "admitted"), number(result, "denied"));
        (
            algorithm,
            admitted,
            denied,
            number(result, "subjects_denied"),
        )
    });
    counts.collect()
}

/// A line of the common log format, `second` seconds after 10:00.
pub(crate) fn line(address: &str, second: u64, request: &str) -> String {
    let (minute, second) = (second / 60, second % 60);
    format!("{address} - - [17/May/2015:10:{minute:02}:{second:02} +0000] \"{request}\" 200 10\n")
}

pub(crate) fn lines(address: &str, seconds: &[u64]) -> String {
    seconds
        .iter()
        .map(|second| line(address, *second, "GET / HTTP/1.1"))
        .collect()
}
