//! Settings in configuration files.

use tollgate_axum::Settings;

const TOML: &str = r#"
    limit = ["10/second", "1000/hour"]
    algorithm = "gcra"
    prefix = "shop"
    headers = ["ratelimit"]
    trusted_proxies = ["10.0.0.0/8", "fd00::/8"]
    forwarded_header = "Forwarded"
    ipv6_prefix = 56
    failure_mode = "closed"
    timeout = "250ms"
"#;

const YAML: &str = "
limit:
  - 10/second
  - limit: 1000
    period: hour
algorithm: gcra
prefix: shop
headers: ratelimit
trusted_proxies: 10.0.0.0/8, fd00::/8
forwarded_header: Forwarded
ipv6_prefix: 56
failure_mode: closed
timeout: 250ms
";

const JSON: &str = r#"{
    "limit": "10/second; 1000/hour", "algorithm": "gcra", "prefix": "shop", "headers": ["RateLimit"],
    "trusted_proxies": ["10.0.0.0/8", "fd00::/8"], "forwarded_header": "Forwarded", "ipv6_prefix": 56,
    "failure_mode": "closed", "timeout": "250 ms"
}"#;

fn toml_error(text: &str) -> String {
    toml::from_str::<Settings>(text).unwrap_err().to_string()
}

#[test]
fn one_meaning_reads_alike_from_every_format() {
    let from_toml: Settings = toml::from_str(TOML).unwrap();
    assert_eq!(from_toml, serde_saphyr::from_str(YAML).unwrap());
    assert_eq!(from_toml, serde_json::from_str(JSON).unwrap());
    let from_environment = Settings::from_vars([
        ("TOLLGATE_LIMIT", "10/second; 1000/hour"),
        ("TOLLGATE_ALGORITHM", "gcra"),
        ("TOLLGATE_PREFIX", "shop"),
        ("TOLLGATE_HEADERS", "ratelimit"),
        ("TOLLGATE_TRUSTED_PROXIES", "10.0.0.0/8,fd00::/8"),
        ("TOLLGATE_FORWARDED_HEADER", "Forwarded"),
        ("TOLLGATE_IPV6_PREFIX", "56"),
        ("TOLLGATE_FAILURE_MODE", "closed"),
        ("TOLLGATE_TIMEOUT", "250ms"),
    ]);
    assert_eq!(from_toml, from_environment.unwrap());
}

#[test]
fn what_is_written_reads_back() {
    let texts = [
        TOML,
        "",
        "trusted_hops = 3",
        "headers = 'none'",
        "trusted_proxies = 'none'",
    ];
    for text in texts {
        let settings: Settings = toml::from_str(text).unwrap();
        let toml = toml::to_string(&settings).unwrap();
        assert_eq!(settings, toml::from_str(&toml).unwrap(), "{toml}");
        let yaml = serde_saphyr::to_string(&settings).unwrap();
        assert_eq!(settings, serde_saphyr::from_str(&yaml).unwrap(), "{yaml}");
        let json = serde_json::to_string(&settings).unwrap();
        assert_eq!(settings, serde_json::from_str(&json).unwrap(), "{json}");
    }
}

#[test]
fn nothing_that_is_not_set_is_written() {
    assert_eq!(serde_json::to_string(&Settings::default()).unwrap(), "{}");
}

#[test]
fn an_unknown_field_is_refused_by_its_name() {
    let error = toml_error("limits = '10/second'");
    assert!(
        error.contains("unknown field `limits`, expected one of `limit`, `algorithm`"),
        "{error}"
    );
    let error = serde_saphyr::from_str::<Settings>("time_out: 1s")
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("time_out") && error.contains("timeout"),
        "{error}"
    );
}

#[test]
fn a_bad_value_is_refused_with_what_would_be_right() {
    for (text, message) in [
        (
            "limit = '10/month'",
            "column 4: unit \"month\" has no fixed length",
        ),
        ("limit = 10", "invalid type: integer `10`"),
        (
            "algorithm = 'bucket'",
            "unknown variant `bucket`, expected one of `fixed-window`",
        ),
        (
            "headers = 'draft-11'",
            "\"draft-11\" is no family of headers; expected \"x-ratelimit\"",
        ),
        ("headers = ['none']", "\"none\" is no family of headers"),
        (
            "headers = true",
            "expected \"x-ratelimit\", \"ratelimit\", a list of them, or \"none\"",
        ),
        ("trusted_proxies = ['nginx']", "\"nginx\" is no network"),
        ("trusted_proxies = ''", "\"\" is no network"),
        (
            "trusted_proxies = 10",
            "expected networks such as \"10.0.0.0/8\"",
        ),
        (
            "trusted_proxies = [10]",
            "invalid type: integer `10`, expected a string",
        ),
        ("trusted_hops = 0", "expected a nonzero u8"),
        (
            "forwarded_header = 'X-Real-IP'",
            "expected \"X-Forwarded-For\" or \"Forwarded\"",
        ),
        (
            "forwarded_header = ['Forwarded']",
            "invalid type: sequence, expected \"X-Forwarded-For\"",
        ),
        (
            "ipv6_prefix = 16",
            "IPv6 prefix length 16 is out of range; expected 32 to 128",
        ),
        (
            "ipv6_prefix = 300",
            "IPv6 prefix length 300 is out of range; expected 32 to 128",
        ),
        (
            "ipv6_prefix = -1",
            "IPv6 prefix length -1 is out of range; expected 32 to 128",
        ),
        (
            "ipv6_prefix = '64'",
            "expected an IPv6 prefix length, 32 to 128",
        ),
        (
            "failure_mode = 'Open'",
            "unknown variant `Open`, expected one of `open`, `closed`, `fallback`",
        ),
        (
            "timeout = 100",
            "expected a duration such as \"100ms\" or \"1s\"",
        ),
        (
            "timeout = '2h'",
            "\"2h\" is out of range; expected 1ms to 1h",
        ),
        (
            "trusted_hops = 1\ntrusted_proxies = []",
            "both trusted_proxies and trusted_hops are set; expected one of them",
        ),
    ] {
        let error = toml_error(text);
        assert!(error.contains(message), "{text}: {error}");
    }
}
