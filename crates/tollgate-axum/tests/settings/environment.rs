//! `TOLLGATE_*`.

#[cfg(unix)]
use std::ffi::OsString;
#[cfg(unix)]
use std::os::unix::ffi::OsStringExt;

use tollgate_axum::{EnvError, Settings, ValueError, VariableError, VariableProblem};

fn one(name: &str, value: &str) -> Result<Settings, EnvError> {
    Settings::from_vars([(name, value)])
}

/// The settings of a TOML file.
fn file(text: &str) -> Settings {
    toml::from_str(text).unwrap()
}

#[test]
fn every_variable_says_what_its_field_in_a_file_says() {
    for (name, value, text) in [
        ("LIMIT", "100/minute", "limit = '100/minute'"),
        (
            "LIMIT",
            "10/second; 1000/hour",
            "limit = ['10/second', '1000/hour']",
        ),
        (
            "LIMIT",
            "20/s burst 100",
            "limit = [{ limit = 20, period = 'second', burst = 100 }]",
        ),
        ("LIMIT", "0/day", "limit = '0/day'"),
        ("ALGORITHM", "gcra", "algorithm = 'gcra'"),
        (
            "ALGORITHM",
            "sliding-window",
            "algorithm = 'sliding-window'",
        ),
        ("PREFIX", "shop", "prefix = 'shop'"),
        ("HEADERS", "ratelimit", "headers = 'ratelimit'"),
        (
            "HEADERS",
            "RateLimit , X-RateLimit",
            "headers = ['x-ratelimit', 'ratelimit']",
        ),
        ("HEADERS", "none", "headers = []"),
        (
            "TRUSTED_PROXIES",
            "10.0.0.0/8, fd00::/8",
            "trusted_proxies = ['10.0.0.0/8', 'fd00::/8']",
        ),
        (
            "TRUSTED_PROXIES",
            "192.0.2.1",
            "trusted_proxies = '192.0.2.1'",
        ),
        ("TRUSTED_PROXIES", "none", "trusted_proxies = []"),
        ("TRUSTED_HOPS", "2", "trusted_hops = 2"),
        (
            "FORWARDED_HEADER",
            "forwarded",
            "forwarded_header = 'Forwarded'",
        ),
        (
            "FORWARDED_HEADER",
            "X-Forwarded-For",
            "forwarded_header = 'x-forwarded-for'",
        ),
        ("IPV6_PREFIX", "48", "ipv6_prefix = 48"),
        ("IPV6_PREFIX", "/56", "ipv6_prefix = 56"),
        ("FAILURE_MODE", "closed", "failure_mode = 'closed'"),
        ("FAILURE_MODE", "open", "failure_mode = 'open'"),
        ("FAILURE_MODE", "fallback", "failure_mode = 'fallback'"),
        ("TIMEOUT", "100ms", "timeout = '100ms'"),
        ("TIMEOUT", "1s", "timeout = '1000 ms'"),
        ("TIMEOUT", "1h", "timeout = '60min'"),
    ] {
        let settings = one(&format!("TOLLGATE_{name}"), value).unwrap();
        assert_eq!(settings, file(text), "{name}={value}");
        assert_ne!(settings, Settings::default(), "{name}={value}");
    }
}

#[test]
fn a_bad_value_is_refused_with_what_would_be_right() {
    for (name, value, message) in [
        (
            "LIMIT",
            "10/month",
            "column 4: unit \"month\" has no fixed length; ",
        ),
        ("LIMIT", "100", "column 4: "),
        ("LIMIT", "10/second;", "column 10: no quota after \";\"; "),
        (
            "ALGORITHM",
            "bucket",
            "invalid input: unknown algorithm \"bucket\"; expected one of fixed-window, ",
        ),
        (
            "HEADERS",
            "draft-11",
            "\"draft-11\" is no family of headers; expected \"x-ratelimit\", ",
        ),
        ("HEADERS", "ratelimit,", "\"\" is no family of headers; "),
        (
            "HEADERS",
            "none,ratelimit",
            "\"none\" is no family of headers; ",
        ),
        (
            "TRUSTED_PROXIES",
            "10.0.0.0/8,nginx",
            "\"nginx\" is no network; expected one such as ",
        ),
        (
            "TRUSTED_PROXIES",
            "10.0.0.1/8",
            "\"10.0.0.1/8\" is an address inside of a network; ",
        ),
        (
            "TRUSTED_HOPS",
            "0",
            "\"0\" is no number of proxies; expected 1 to 255",
        ),
        ("TRUSTED_HOPS", "256", "\"256\" is no number of proxies; "),
        ("TRUSTED_HOPS", "two", "\"two\" is no number of proxies; "),
        (
            "FORWARDED_HEADER",
            "X-Real-IP",
            "\"X-Real-IP\" is no header that tells addresses; ",
        ),
        (
            "IPV6_PREFIX",
            "16",
            "IPv6 prefix length 16 is out of range; expected 32 to 128",
        ),
        (
            "IPV6_PREFIX",
            "::/64",
            "\"::/64\" is no IPv6 prefix length; ",
        ),
        (
            "FAILURE_MODE",
            "Open",
            "\"Open\" is no failure mode; expected open, closed or fallback",
        ),
        (
            "TIMEOUT",
            "100",
            "\"100\" is no duration; expected a number and a unit, ",
        ),
        ("TIMEOUT", "-1s", "\"-1s\" is no duration; "),
        (
            "TIMEOUT",
            "0s",
            "\"0s\" is out of range; expected 1ms to 1h",
        ),
        ("TIMEOUT", "999us", "\"999us\" is out of range; "),
        ("TIMEOUT", "1M", "\"1M\" is out of range; "),
    ] {
        let error = one(&format!("TOLLGATE_{name}"), value).unwrap_err();
        let shown = error.variables()[0].to_string();
        let begins = format!("TOLLGATE_{name}={value:?}: {message}");
        assert!(
            shown.starts_with(&begins),
            "{shown}\ndoes not begin with\n{begins}"
        );
    }
}

#[test]
fn an_empty_value_is_no_value() {
    for name in ["LIMIT", "TRUSTED_PROXIES", "HEADERS", "PREFIX"] {
        for value in ["", " "] {
            let name = format!("TOLLGATE_{name}");
            let error = one(&name, value).unwrap_err();
            assert!(
                matches!(error.variables()[0].problem(), VariableProblem::Empty),
                "{name}"
            );
            assert_eq!(
                error.to_string(),
                format!(
                    "1 environment variable cannot be used\n  {name} is empty; expected a value, or the variable unset"
                )
            );
        }
    }
}

#[test]
fn all_bad_variables_are_reported_at_once_in_the_order_of_their_names() {
    let error = Settings::from_vars([
        ("TOLLGATE_TIMEOUT", "soon"),
        ("TOLLGATE_ALGORITHM", "gcra"),
        ("TOLLGATE_LIMITS", "10/second"),
        ("TOLLGATE_LIMIT", ""),
        ("TOLLGATE_IPV6_PREFIX", "0"),
    ])
    .unwrap_err();
    let names: Vec<_> = error
        .variables()
        .iter()
        .map(VariableError::variable)
        .collect();
    assert_eq!(
        names,
        [
            "TOLLGATE_IPV6_PREFIX",
            "TOLLGATE_LIMIT",
            "TOLLGATE_LIMITS",
            "TOLLGATE_TIMEOUT"
        ]
    );
}

#[test]
fn an_unknown_variable_is_reported_with_the_nearest_name() {
    for (name, nearest) in [
        ("TOLLGATE_LIMITS", "TOLLGATE_LIMIT"),
        ("TOLLGATE_TIMEOUT_MS", "TOLLGATE_TIMEOUT"),
        ("TOLLGATE_TRUSTED_PROXYS", "TOLLGATE_TRUSTED_PROXIES"),
        ("TOLLGATE_FAILUREMODE", "TOLLGATE_FAILURE_MODE"),
        ("TOLLGATE_limit", "TOLLGATE_LIMIT"),
        ("TOLLGATE_IPV6_PREFX", "TOLLGATE_IPV6_PREFIX"),
    ] {
        let error = one(name, "x").unwrap_err();
        assert_eq!(
            error.variables()[0].to_string(),
            format!("{name} is unknown; did you mean {nearest}?")
        );
    }
}

#[test]
fn variables_of_others_are_left_alone() {
    let others = [
        ("PATH", "/bin"),
        ("TOLLGATE", "x"),
        ("XTOLLGATE_LIMIT", "x"),
        ("tollgate_limit", "x"),
    ];
    assert_eq!(Settings::from_vars(others).unwrap(), Settings::default());
}

#[test]
fn a_name_cannot_begin_a_line_of_its_own_in_what_is_printed() {
    let error = Settings::from_vars([("TOLLGATE_X\n\u{1b}[31mall is well", "1")]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "1 environment variable cannot be used\n  \
         TOLLGATE_X\\n\\u{1b}[31mall is well is unknown; did you mean TOLLGATE_LIMIT?"
    );
}

#[cfg(unix)]
#[test]
fn text_that_is_no_utf_8_is_an_error_in_a_value_and_in_a_name() {
    let not_unicode = || OsString::from_vec(b"10/second\xff".to_vec());
    let error =
        Settings::from_vars([(OsString::from("TOLLGATE_LIMIT"), not_unicode())]).unwrap_err();
    assert_eq!(
        error.variables()[0].to_string(),
        "TOLLGATE_LIMIT is not UTF-8; expected text"
    );

    let name = OsString::from_vec(b"TOLLGATE_LIMIT\xff".to_vec());
    let error = Settings::from_vars([(name, "10/second")]).unwrap_err();
    assert!(matches!(
        error.variables()[0].problem(),
        VariableProblem::Unknown { .. }
    ));

    let others = [(OsString::from_vec(b"OTHER\xff".to_vec()), not_unicode())];
    assert_eq!(Settings::from_vars(others).unwrap(), Settings::default());
}

#[test]
fn a_variable_that_is_there_twice_is_an_error() {
    let twice = [
        ("TOLLGATE_LIMIT", "1/second"),
        ("TOLLGATE_LIMIT", "1/second"),
    ];
    let error = Settings::from_vars(twice).unwrap_err();
    assert!(matches!(
        error.variables()[0].problem(),
        VariableProblem::Repeated
    ));
}

#[test]
fn proxies_and_hops_exclude_each_other() {
    let both = [
        ("TOLLGATE_TRUSTED_PROXIES", "10.0.0.0/8"),
        ("TOLLGATE_TRUSTED_HOPS", "1"),
    ];
    let error = Settings::from_vars(both).unwrap_err();
    assert_eq!(
        error.variables()[0].to_string(),
        "TOLLGATE_TRUSTED_HOPS and TOLLGATE_TRUSTED_PROXIES are both set; expected one of them"
    );
}

#[test]
fn the_reason_is_typed() {
    let error = one("TOLLGATE_TIMEOUT", "soon").unwrap_err();
    let VariableProblem::Invalid { value, reason } = error.variables()[0].problem() else {
        panic!("{error}")
    };
    assert_eq!(value, "soon");
    assert!(matches!(**reason, ValueError::NotADuration(_)));
}

/// Set in the process that another test starts to have an environment of its own.
const CHILD: &str = "SETTINGS_TEST_CHILD";

#[test]
fn the_environment_of_the_process_is_read() {
    if std::env::var_os(CHILD).is_some() {
        let settings = Settings::from_env().unwrap();
        assert_eq!(settings, file("limit = '7/second'"));
        return;
    }
    let status = std::process::Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "environment::the_environment_of_the_process_is_read",
        ])
        .env_clear()
        .envs([(CHILD, "1"), ("TOLLGATE_LIMIT", "7/second")])
        .status();
    assert!(status.unwrap().success());
}
