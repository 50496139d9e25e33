//! What the settings are turned into, and which of two wins.

use std::net::SocketAddr;
use std::time::Duration;

use axum::extract::ConnectInfo;
use tollgate_axum::{ForwardedHeader, Headers, KeyExtractor, Settings, SettingsError};
use tollgate_core::{FailureMode, Policies};

fn settings(text: &str) -> Settings {
    toml::from_str(text).unwrap()
}

fn names_and_quotas(policies: &Policies) -> Vec<String> {
    policies.iter().map(ToString::to_string).collect()
}

/// The client of a request from 10.0.0.1 with both headers.
fn client(settings: &Settings) -> String {
    let (mut parts, ()) = http::Request::new(()).into_parts();
    let peer = SocketAddr::from(([10, 0, 0, 1], 80));
    parts.extensions.insert(ConnectInfo(peer));
    let addresses = "192.0.2.99, 2001:db8:1:2::3, 10.0.0.2".parse().unwrap();
    parts.headers.insert("x-forwarded-for", addresses);
    parts
        .headers
        .insert("forwarded", "for=192.0.2.60".parse().unwrap());
    let key = settings
        .key()
        .unwrap()
        .extract_now(&parts)
        .unwrap()
        .unwrap()
        .unwrap();
    String::from_utf8(key.subject().to_vec()).unwrap()
}

#[test]
fn the_quotas_become_policies_whose_names_do_not_change_with_them() {
    let policies = settings("limit = '100/minute'").policies().unwrap();
    assert_eq!(
        names_and_quotas(&policies),
        ["default: token-bucket 100/minute"]
    );

    let three = settings("limit = '10/second; 10/second; 1000/hour'\nalgorithm = 'sliding-window'");
    assert_eq!(
        names_and_quotas(&three.policies().unwrap()),
        [
            "default: sliding-window 10/second",
            "default-2: sliding-window 10/second",
            "default-3: sliding-window 1000/hour",
        ]
    );
}

#[test]
fn without_a_limit_there_are_no_policies() {
    let error = settings("algorithm = 'gcra'").policies().unwrap_err();
    assert!(matches!(error, SettingsError::NoLimit));
    assert_eq!(
        error.to_string(),
        "limit is not set; expected a quota such as 100/minute"
    );
}

#[test]
fn quotas_that_do_not_fit_the_algorithm_or_are_too_many_are_refused() {
    let burst = settings("limit = '10/second burst 20'\nalgorithm = 'fixed-window'");
    let error = burst.policies().unwrap_err();
    assert!(matches!(error, SettingsError::Policies(_)), "{error}");

    let many = vec!["'10/second'"; 100].join(",");
    let error = settings(&format!("limit = [{many}]"))
        .policies()
        .unwrap_err();
    assert!(matches!(error, SettingsError::Policies(_)), "{error}");
}

#[test]
fn clients_are_told_by_what_is_trusted() {
    assert_eq!(client(&settings("")), "ip:10.0.0.1");
    assert_eq!(client(&settings("trusted_proxies = 'none'")), "ip:10.0.0.1");
    assert_eq!(
        client(&settings("trusted_proxies = '10.0.0.0/8'")),
        "ip:2001:db8:1:2::/64"
    );
    assert_eq!(
        client(&settings(
            "trusted_proxies = '10.0.0.0/8'\nipv6_prefix = 48"
        )),
        "ip:2001:db8:1::/48"
    );
    assert_eq!(client(&settings("trusted_hops = 1")), "ip:10.0.0.2");
    assert_eq!(client(&settings("trusted_hops = 3")), "ip:192.0.2.99");
    assert_eq!(
        client(&settings(
            "trusted_hops = 1\nforwarded_header = 'Forwarded'"
        )),
        "ip:192.0.2.60"
    );
}

#[test]
fn a_header_that_nobody_is_trusted_to_write_is_refused() {
    let error = settings("forwarded_header = 'Forwarded'")
        .key()
        .unwrap_err();
    assert!(matches!(
        error,
        SettingsError::HeaderWithoutProxies(ForwardedHeader::Forwarded)
    ));
    // Said outright, that nobody is trusted is no mistake.
    assert!(
        settings("forwarded_header = 'Forwarded'\ntrusted_proxies = 'none'")
            .key()
            .is_ok()
    );
}

#[test]
fn the_families_of_headers_are_those_that_are_named() {
    let none = Headers::none();
    assert_eq!(settings("").headers(), Headers::default());
    assert_eq!(settings("headers = 'none'").headers(), none);
    assert_eq!(
        settings("headers = 'ratelimit'").headers(),
        none.clone().rate_limit(true)
    );
    assert_eq!(
        settings("headers = 'x-ratelimit'").headers(),
        none.x_rate_limit(true)
    );
    assert_eq!(
        settings("headers = 'x-ratelimit, ratelimit'").headers(),
        Headers::default()
    );
}

#[test]
fn failures_and_timeouts_are_handed_on() {
    assert_eq!(settings("").failure_mode(), FailureMode::Open);
    assert_eq!(
        settings("failure_mode = 'closed'").failure_mode(),
        FailureMode::Closed
    );
    assert_eq!(settings("").timeout(), None);
    assert_eq!(
        settings("timeout = '1s 500ms'").timeout(),
        Some(Duration::from_millis(1_500))
    );
}

#[test]
fn what_stands_in_front_wins_field_by_field() {
    let fields = [
        ("limit = '1/second'", "limit = '2/second'"),
        ("algorithm = 'gcra'", "algorithm = 'sliding-log'"),
        ("prefix = 'a'", "prefix = 'b'"),
        ("headers = 'none'", "headers = 'ratelimit'"),
        ("trusted_proxies = 'none'", "trusted_proxies = '10.0.0.0/8'"),
        (
            "forwarded_header = 'Forwarded'",
            "forwarded_header = 'X-Forwarded-For'",
        ),
        ("ipv6_prefix = 48", "ipv6_prefix = 128"),
        ("failure_mode = 'closed'", "failure_mode = 'open'"),
        ("timeout = '1s'", "timeout = '2s'"),
    ];
    let (all, others): (Vec<_>, Vec<_>) = fields.into_iter().unzip();
    let file = settings(&all.join("\n"));
    assert_eq!(Settings::default().or(file.clone()), file);
    assert_eq!(file.clone().or(Settings::default()), file);
    for (index, other) in others.iter().enumerate() {
        let mut merged = all.clone();
        merged[index] = other;
        assert_eq!(
            settings(other).or(file.clone()),
            settings(&merged.join("\n")),
            "{other}"
        );
    }
}

#[test]
fn proxies_and_hops_take_each_others_place() {
    let proxies = settings("trusted_proxies = '10.0.0.0/8'");
    let hops = settings("trusted_hops = 2");
    assert_eq!(hops.clone().or(proxies.clone()), hops);
    assert_eq!(proxies.clone().or(hops), proxies);
}
