//! Policies, algorithms and failure modes in configuration files.
#![cfg(feature = "serde")]

use serde::{Deserialize, Serialize};
use tollgate_core::{Algorithm, FailureMode, Policy};

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Config {
    policies: Vec<Policy>,
}

fn policy(name: &str, algorithm: Algorithm, quota: &str) -> Policy {
    Policy::new(name, algorithm, quota.parse().expect("legal")).expect("legal")
}

fn config() -> Config {
    let daily = policy("daily", Algorithm::FixedWindow, "1000/day");
    Config {
        policies: vec![
            policy("burst", Algorithm::TokenBucket, "20/second burst 100"),
            daily
                .aligned(-300)
                .expect("legal")
                .on_failure(FailureMode::Closed),
        ],
    }
}

fn refusal(json: &str) -> String {
    serde_json::from_str::<Policy>(json)
        .expect_err(json)
        .to_string()
}

#[test]
fn a_policy_is_a_map_of_its_parts() {
    let json = r#"{"policies":[{"name":"burst","algorithm":"token-bucket","quota":"20/second burst 100"},{"name":"daily","algorithm":"fixed-window","quota":"1000/day","utc_offset_minutes":-300,"on_failure":"closed"}]}"#;
    assert_eq!(serde_json::to_string(&config()).unwrap(), json);
    assert_eq!(serde_json::from_str::<Config>(json).unwrap(), config());

    let toml = r#"[[policies]]
name = "burst"
algorithm = "token-bucket"
quota = "20/second burst 100"

[[policies]]
name = "daily"
algorithm = "fixed-window"
quota = "1000/day"
utc_offset_minutes = -300
on_failure = "closed"
"#;
    assert_eq!(toml::to_string(&config()).unwrap(), toml);
    assert_eq!(toml::from_str::<Config>(toml).unwrap(), config());
}

#[test]
fn a_quota_inside_may_be_a_map_too() {
    let json = r#"{"name": "burst", "algorithm": "token-bucket", "quota": {"limit": 20, "period": "1s", "burst": 100}}"#;
    assert_eq!(
        serde_json::from_str::<Policy>(json).unwrap(),
        config().policies[0]
    );
}

#[test]
fn shadow_mode_is_a_flag_that_is_left_out_where_it_is_off() {
    let enforced = policy("login", Algorithm::SlidingLog, "5/minute");
    let json = r#"{"name":"login","algorithm":"sliding-log","quota":"5/minute","shadow":true}"#;
    let shadow = enforced.clone().shadow();
    assert_eq!(serde_json::to_string(&shadow).unwrap(), json);
    assert_eq!(serde_json::from_str::<Policy>(json).unwrap(), shadow);
    let off = json.replace("true", "false");
    assert_eq!(serde_json::from_str::<Policy>(&off).unwrap(), enforced);
    let bytes = postcard::to_allocvec(&shadow).unwrap();
    assert_eq!(postcard::from_bytes::<Policy>(&bytes).unwrap(), shadow);
}

#[test]
fn a_binary_format_that_names_no_fields_reads_back_what_it_wrote() {
    let bytes = postcard::to_allocvec(&config()).unwrap();
    assert_eq!(postcard::from_bytes::<Config>(&bytes).unwrap(), config());
}

#[test]
fn what_makes_no_policy_is_refused_with_the_constructors_words() {
    let cases = [
        (
            r#"{"name":"","algorithm":"gcra","quota":"1/s"}"#,
            "a policy name has 1 to 128 characters, not 0",
        ),
        (
            r#"{"name":"x","algorithm":"sliding-log","quota":"1/s burst 9"}"#,
            "a sliding-log has no burst",
        ),
        (
            r#"{"name":"x","algorithm":"gcra","quota":"1/s","utc_offset_minutes":0}"#,
            "only a fixed-window can be aligned",
        ),
        (
            r#"{"name":"x","algorithm":"fixed-window","quota":"1/s","utc_offset_minutes":2000}"#,
            "between -1080 and 1080",
        ),
        (
            r#"{"name":"x","algorithm":"gcra","quota":"10/mont"}"#,
            "column 4: unknown unit",
        ),
        (
            r#"{"name":"x","algorithm":"leaky","quota":"1/s"}"#,
            "unknown variant `leaky`, expected one of `fixed-window`",
        ),
        (
            r#"{"name":"x","algorithm":"gcra","quota":"1/s","on_failure":"shut"}"#,
            "unknown variant `shut`",
        ),
        (
            r#"{"name":"x","algorithm":"gcra","quota":"1/s","burst":5}"#,
            "unknown field `burst`",
        ),
        (
            r#"{"name":"x","algorithm":"gcra","quota":"1/s","shadow":"yes"}"#,
            "invalid type: string \"yes\", expected a boolean",
        ),
        (
            r#"{"name":"x","algorithm":"gcra","quota":"1/s","shadowed":true}"#,
            "unknown field `shadowed`",
        ),
        (
            r#"{"name":"x","name":"y","algorithm":"gcra","quota":"1/s"}"#,
            "duplicate field `name`",
        ),
        (
            r#"{"algorithm":"gcra","quota":"1/s"}"#,
            "missing field `name`",
        ),
    ];
    for (json, why) in cases {
        let message = refusal(json);
        assert!(message.contains(why), "{message} should say: {why}");
    }
}

#[test]
fn algorithms_and_failure_modes_are_their_names() {
    for algorithm in Algorithm::ALL {
        let json = format!("\"{algorithm}\"");
        assert_eq!(serde_json::to_string(&algorithm).unwrap(), json);
        assert_eq!(serde_json::from_str::<Algorithm>(&json).unwrap(), algorithm);
    }
    for (mode, json) in [
        (FailureMode::Open, "\"open\""),
        (FailureMode::Closed, "\"closed\""),
        (FailureMode::Fallback, "\"fallback\""),
    ] {
        assert_eq!(serde_json::to_string(&mode).unwrap(), json);
        assert_eq!(serde_json::from_str::<FailureMode>(json).unwrap(), mode);
    }
    assert!(serde_json::from_str::<FailureMode>("\"Open\"").is_err());
}
