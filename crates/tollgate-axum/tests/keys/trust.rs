//! The networks of trusted proxies.

use tollgate_axum::{TrustedProxies, TrustedProxiesError};

#[test]
fn networks_are_read_and_written() {
    let proxies: TrustedProxies = " 10.0.0.0/8,192.0.2.1 , fd00::/8,::1".parse().unwrap();
    assert_eq!(
        proxies.to_string(),
        "10.0.0.0/8, 192.0.2.1/32, fd00::/8, ::1/128"
    );
    assert_eq!(proxies.to_string().parse(), Ok(proxies));
    let nobody: TrustedProxies = "none".parse().unwrap();
    assert!(nobody.is_empty());
    assert_eq!(nobody.to_string(), "none");
}

#[test]
fn a_network_of_mapped_addresses_is_one_of_ipv4_addresses() {
    let proxies = TrustedProxies::new(["::ffff:10.0.0.0/104", "::ffff:192.0.2.1"]).unwrap();
    assert_eq!(proxies.to_string(), "10.0.0.0/8, 192.0.2.1/32");
    let all_of_ipv6 = TrustedProxies::new(["::/0"]).unwrap();
    assert!(!all_of_ipv6.contains("::ffff:10.0.0.1".parse().unwrap()));
    let all_mapped = TrustedProxies::new(["::ffff:0:0/96"]).unwrap();
    assert!(all_mapped.contains("10.0.0.1".parse().unwrap()));
}

#[test]
fn what_is_no_network_is_refused() {
    for text in [
        "",
        "nginx",
        "10.0.0.0/33",
        "10.0.0.0/",
        "10.0.0.0/-1",
        "10/8",
        "10.0.0.0/8/8",
        "fd00::/129",
        ",",
    ] {
        let error = TrustedProxies::new([text]).unwrap_err();
        assert_eq!(
            error,
            TrustedProxiesError::NotANetwork(text.to_owned()),
            "{text}"
        );
    }
    assert!("10.0.0.0/8,".parse::<TrustedProxies>().is_err());
    let error = TrustedProxies::new(["fd00::1/8"]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "\"fd00::1/8\" is an address inside of a network; expected \"fd00::/8\" or \"fd00::1\""
    );
}
