//! Who is counted behind proxies, over real connections: the peer is the loopback address, and plays the proxy.

use std::net::{Ipv6Addr, SocketAddr};

use axum::Router;
use axum::routing::get;
use reqwest::header::HeaderValue;
use reqwest::{Method, Response};
use tokio::net::TcpListener;
use tollgate_axum::{ForwardedAddress, ForwardedHeader, KeyExtractor, PeerAddress, RateLimitLayer};
use tollgate_memory::{ManualClock, Quota};

use crate::server::{Server, http1, limiter};

/// An app that lets each client through once.
fn once(key: impl KeyExtractor) -> Router {
    let limiter = limiter(Quota::per_minute(1), &ManualClock::default());
    let app = Router::new().route("/", get(|| async { "served" }));
    app.route_layer(RateLimitLayer::new(limiter).key(key))
}

async fn behind<const N: usize>(networks: [&str; N]) -> Server {
    let key = ForwardedAddress::behind(networks.try_into().unwrap());
    Server::start(once(key)).await
}

async fn send(server: &Server, header: &str, lines: &[&[u8]]) -> Response {
    let mut request = server.request(Method::GET, "/");
    for line in lines {
        request = request.header(header, HeaderValue::from_bytes(line).unwrap());
    }
    request.send().await.unwrap()
}

async fn status(server: &Server, lines: &[&[u8]]) -> u16 {
    send(server, "x-forwarded-for", lines)
        .await
        .status()
        .as_u16()
}

#[tokio::test]
async fn h17_an_untrusted_peer_is_the_client_whatever_it_forwards() {
    let server = behind(["10.0.0.0/8"]).await;
    assert_eq!(status(&server, &[b"198.51.100.1"]).await, 200);
    assert_eq!(status(&server, &[b"198.51.100.2"]).await, 429);
    assert_eq!(status(&server, &[b"no address", b"\xff"]).await, 429);
    assert_eq!(status(&server, &[]).await, 429);
}

#[tokio::test]
async fn h17_a_trusted_peer_is_the_client_where_it_forwards_nobody() {
    let server = behind(["127.0.0.0/8"]).await;
    assert_eq!(status(&server, &[]).await, 200);
    assert_eq!(status(&server, &[]).await, 429);
    assert_eq!(status(&server, &[b"198.51.100.1"]).await, 200);
}

#[tokio::test]
async fn h17_what_a_trusted_peer_malforms_is_refused_and_not_repeated() {
    let server = behind(["127.0.0.0/8"]).await;
    for lines in [
        &[&b"no-address"[..]][..],
        &[b"198.51.100.1,"],
        &[b""],
        &[b"198.51.100.1", b"no-address"],
        &[b"198.51.100.1, \xff\xfe"],
        &[b"198.51.100.1."],
        &[b"198.51.100.1:123456"],
        &[b"[198.51.100.1]"],
        &[b"fe80::1%"],
    ] {
        let refused = send(&server, "x-forwarded-for", lines).await;
        assert_eq!(refused.status(), 500, "{lines:?}");
        for absent in ["retry-after", "x-ratelimit-limit", "ratelimit"] {
            assert!(!refused.headers().contains_key(absent), "{absent}");
        }
        let document = refused.text().await.unwrap();
        assert!(!document.contains("address"), "{document}");
    }
    // Nothing was counted for anybody.
    assert_eq!(status(&server, &[b"198.51.100.1"]).await, 200);
}

#[tokio::test]
async fn b58_a_forged_left_end_never_buys_a_fresh_limit() {
    let server = behind(["127.0.0.0/8", "10.0.0.0/8"]).await;
    assert_eq!(status(&server, &[b"203.0.113.7, 10.0.0.2"]).await, 200);
    for lines in [
        &[&b"192.0.2.1, 203.0.113.7, 10.0.0.2"[..]][..],
        &[b"10.0.0.9, 203.0.113.7"],
        &[b"192.0.2.2", b"203.0.113.7", b"10.0.0.3"],
        &[b"\xff\xfe,203.0.113.7"],
        &[b"no address", b"203.0.113.7"],
    ] {
        assert_eq!(status(&server, lines).await, 429, "{lines:?}");
    }
    let mut forged = b"192.0.2.3,".repeat(10_000);
    forged.extend_from_slice(b"203.0.113.7");
    assert_eq!(status(&server, &[&forged]).await, 429);
    // The header that the proxies do not write is the client's.
    let other = send(&server, "forwarded", &[b"for=192.0.2.4"]).await;
    assert_eq!(
        other.status(),
        200,
        "counted as the peer, for the first time"
    );
    let other = send(&server, "forwarded", &[b"for=192.0.2.5"]).await;
    assert_eq!(other.status(), 429);
}

#[tokio::test]
async fn b59_a_port_per_connection_is_no_fresh_limit() {
    let server = behind(["127.0.0.0/8"]).await;
    assert_eq!(status(&server, &[b"1.2.3.4:5678"]).await, 200);
    for entry in [&b"1.2.3.4:5679"[..], b"1.2.3.4", b"1.2.3.4:65535"] {
        assert_eq!(status(&server, &[entry]).await, 429);
    }
    let key = ForwardedAddress::behind(["127.0.0.0/8"].try_into().unwrap());
    let server = Server::start(once(key.header(ForwardedHeader::Forwarded))).await;
    for (line, expected) in [
        (&b"for=\"[2001:db8::1]:4711\""[..], 200),
        (b"for=\"[2001:db8::2]:4712\";proto=https", 429),
    ] {
        let response = send(&server, "forwarded", &[line]).await;
        assert_eq!(response.status(), expected);
    }
}

#[tokio::test]
async fn b60_ipv4_addresses_in_ipv6_clothes_do_not_share_one_limit() {
    let server = behind(["127.0.0.0/8"]).await;
    for (entry, expected) in [
        (&b"[::ffff:1.2.3.4]:80"[..], 200),
        (b"[::FFFF:102:304]", 429),
        (b"1.2.3.4", 429),
        (b"::ffff:1.2.3.5", 200),
        (b"0:0:0:0:0:ffff:0102:0306", 200),
    ] {
        assert_eq!(status(&server, &[entry]).await, expected);
    }
}

/// A socket of both protocols shows an IPv4 peer as `::ffff:127.0.0.1`.
#[tokio::test]
async fn b60_an_ipv4_peer_of_an_ipv6_socket_is_told_from_an_ipv6_peer() {
    let listener = TcpListener::bind((Ipv6Addr::UNSPECIFIED, 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let app = once(PeerAddress::new()).into_make_service_with_connect_info::<SocketAddr>();
    let serving = tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
    for (host, expected) in [("127.0.0.1", 200), ("127.0.0.1", 429), ("[::1]", 200)] {
        let url = format!("http://{host}:{port}/");
        let response = http1().get(url).send().await.unwrap();
        assert_eq!(response.status(), expected, "{host}");
    }
    serving.abort();
}
