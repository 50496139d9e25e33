//! Quotas in configuration files.
#![cfg(feature = "serde")]

use serde::{Deserialize, Serialize};
use tollgate_core::{Quota, QuotaList};

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Limits {
    login: Quota,
    api: QuotaList,
}

fn limits() -> Limits {
    Limits {
        login: Quota::per_minute(5).with_burst(10).expect("a legal burst"),
        api: "10/second; 1000/hour".parse().expect("a legal list"),
    }
}

fn json_refusal(json: &str) -> String {
    let error = serde_json::from_str::<Quota>(json).expect_err(json);
    let message = error.to_string();
    // The rest is the place in the file.
    let end = message.rfind(" at line ").unwrap_or(message.len());
    message[..end].to_owned()
}

fn toml_refusal(toml: &str) -> String {
    let error = toml::from_str::<Limits>(toml).expect_err(toml);
    error.message().to_owned()
}

#[test]
fn a_quota_is_written_as_its_canonical_text() {
    let json = r#"{"login":"5/minute burst 10","api":"10/second; 1000/hour"}"#;
    assert_eq!(serde_json::to_string(&limits()).unwrap(), json);
    assert_eq!(serde_json::from_str::<Limits>(json).unwrap(), limits());

    let toml = "login = \"5/minute burst 10\"\napi = \"10/second; 1000/hour\"\n";
    assert_eq!(toml::to_string(&limits()).unwrap(), toml);
    assert_eq!(toml::from_str::<Limits>(toml).unwrap(), limits());
}

#[test]
fn a_binary_format_holds_the_text() {
    let bytes = postcard::to_allocvec(&limits()).unwrap();
    assert_eq!(postcard::from_bytes::<Limits>(&bytes).unwrap(), limits());
}

#[test]
fn json_maps_name_limit_period_and_burst() {
    let json = r#"{
        "login": {"limit": 5, "period": "minute", "burst": 10},
        "api": ["10/s", {"period": "1 hour", "limit": 1000, "burst": null}]
    }"#;
    assert_eq!(serde_json::from_str::<Limits>(json).unwrap(), limits());
}

#[test]
fn toml_tables_name_limit_period_and_burst() {
    let toml = r#"
        api = ["10/s", { limit = 1000, period = "60 min" }]
        [login]
        limit = 5
        period = "60s"
        burst = 10
    "#;
    assert_eq!(toml::from_str::<Limits>(toml).unwrap(), limits());
}

#[test]
fn a_json_value_of_any_kind_is_read_or_refused() {
    let value = serde_json::json!({"limit": 5, "period": "minute", "burst": 10});
    assert_eq!(
        serde_json::from_value::<Quota>(value).unwrap(),
        limits().login
    );
    let what = "expected a quota such as \"100/minute\", or a map with limit, period and burst";
    let refusals = [
        ("100", "invalid type: integer `100`"),
        ("1.5", "invalid type: floating point `1.5`"),
        ("null", "invalid type: null"),
        ("true", "invalid type: boolean `true`"),
        ("[100, \"minute\"]", "invalid type: sequence"),
    ];
    for (json, problem) in refusals {
        assert_eq!(json_refusal(json), format!("{problem}, {what}"));
    }
}

#[test]
fn a_text_is_refused_with_the_error_of_the_parser_and_the_text() {
    for text in ["100/mont", "1.5/s", "10/s; 5/m", "", "0/s burst 5"] {
        let error = text.parse::<Quota>().unwrap_err();
        assert_eq!(
            json_refusal(&format!("{text:?}")),
            format!("quota {text:?}: {error}")
        );
    }
    let toml = "login = \"5/minute\"\napi = \"10/s; 5/mont\"";
    assert_eq!(
        toml_refusal(toml),
        "quotas \"10/s; 5/mont\": column 9: unknown unit \"mont\"; \
         expected one of second, minute, hour, day, week or ms"
    );
}

#[test]
fn a_period_without_a_unit_is_refused() {
    let message = "period 60 has no unit; expected a text such as \"60s\"";
    assert_eq!(json_refusal(r#"{"limit": 5, "period": 60}"#), message);
    let toml = "api = \"1/s\"\nlogin = { limit = 5, period = 60 }";
    assert_eq!(toml_refusal(toml), message);
    assert_eq!(
        json_refusal(r#"{"limit": 5, "period": "60"}"#),
        "period \"60\": column 3: unexpected end of the text; \
         expected one of second, minute, hour, day, week or ms"
    );
}

#[test]
fn a_period_in_a_map_is_refused_with_the_error_of_the_parser() {
    let refusals = [
        (
            "\"\"",
            "period \"\": column 1: unexpected end of the text; expected a period such as minute or 15 seconds",
        ),
        (
            "\"month\"",
            "period \"month\": column 1: unit \"month\" has no fixed length; expected a fixed length such as 30 days",
        ),
        (
            "\"0s\"",
            "period \"0s\": column 1: period is zero; expected at least 1 ms",
        ),
        (
            "\"60 s burst 5\"",
            "period \"60 s burst 5\": column 6: unexpected \"burst\"; expected the end of the text",
        ),
        (
            "-60",
            "invalid type: integer `-60`, expected a period with its unit, such as \"60s\" or \"15 minutes\"",
        ),
        (
            "0.5",
            "invalid type: floating point `0.5`, expected a period with its unit, such as \"60s\" or \"15 minutes\"",
        ),
        (
            "null",
            "invalid type: null, expected a period with its unit, such as \"60s\" or \"15 minutes\"",
        ),
    ];
    for (period, message) in refusals {
        assert_eq!(
            json_refusal(&format!(r#"{{"limit": 5, "period": {period}}}"#)),
            message
        );
    }
}

#[test]
fn a_limit_or_burst_in_a_map_is_a_whole_number_in_range() {
    let number = "expected a whole number from 0 to 1000000000000";
    let refusals = [
        (r#"{"limit": 1.5, "period": "s"}"#, format!("invalid type: floating point `1.5`, {number}")),
        (r#"{"limit": "5", "period": "s"}"#, format!("invalid type: string \"5\", {number}")),
        (r#"{"limit": -5, "period": "s"}"#, format!("invalid value: integer `-5`, {number}")),
        (r#"{"limit": 1000000000001, "period": "s"}"#, "limit 1000000000001 is too large; expected at most 1000000000000".to_owned()),
        (r#"{"limit": 5, "period": "s", "burst": 0}"#, "burst is zero; expected at least 1, or limit 0 to block everything".to_owned()),
        (r#"{"limit": 0, "period": "s", "burst": 5}"#, "limit 0 blocks everything and cannot have a burst; expected no burst, or a limit of at least 1".to_owned()),
    ];
    for (json, message) in refusals {
        assert_eq!(json_refusal(json), message, "{json}");
    }
    let toml = "api = \"1/s\"\nlogin = { limit = -5, period = \"s\" }";
    assert_eq!(
        toml_refusal(toml),
        format!("invalid value: integer `-5`, {number}")
    );
}

#[test]
fn missing_unknown_and_repeated_fields_are_refused() {
    let refusals = [
        (r#"{"limit": 5}"#, "missing field `period`"),
        (r#"{"period": "s"}"#, "missing field `limit`"),
        (
            r#"{"limit": 5, "period": "s", "bursts": 5}"#,
            "unknown field `bursts`, expected one of `limit`, `period`, `burst`",
        ),
        (
            r#"{"limit": 5, "limit": 6, "period": "s"}"#,
            "duplicate field `limit`",
        ),
    ];
    for (json, message) in refusals {
        assert_eq!(json_refusal(json), message, "{json}");
    }
}

#[test]
fn an_empty_list_is_refused() {
    let toml = "login = \"5/minute\"\napi = []";
    assert_eq!(
        toml_refusal(toml),
        "list of quotas is empty; expected at least one quota"
    );
}
