//! Clients behind real proxies, each of them counted by its own address whatever it claims.
//!
//! Loopback has many addresses: clients come from 127.0.0.x, proxies from 127.0.1.x, which is the trusted network.

#![expect(
    clippy::unwrap_used,
    reason = "a failed unwrap is a failed test, with the place in the message"
)]

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use axum::Router;
use axum::routing::get;
use reqwest::Client;
use tokio::net::TcpListener;
use tollgate_axum::{ForwardedAddress, ForwardedHeader, KeyExtractor, RateLimitLayer};
use tollgate_memory::{Limiter, MemoryStore, Quota};
use tollgate_services::{Forwarding, ForwardingHeader, HttpProxy};

const HEADERS: [ForwardedHeader; 2] = [ForwardedHeader::XForwardedFor, ForwardedHeader::Forwarded];
const NGINX: Ipv4Addr = Ipv4Addr::new(127, 0, 1, 1);
const HAPROXY: Ipv4Addr = Ipv4Addr::new(127, 0, 1, 2);
const CLIENT: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 7);
const OTHER: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 8);

fn by_network(header: ForwardedHeader) -> ForwardedAddress {
    ForwardedAddress::behind(["127.0.1.0/24"].try_into().unwrap()).header(header)
}

/// A service that admits two requests a day to each client; where it listens.
async fn serve(key: impl KeyExtractor) -> SocketAddr {
    let limiter = Limiter::new(MemoryStore::new(), Quota::per_day(2));
    let layer = RateLimitLayer::new(limiter).key(key);
    let app = Router::new().route("/", get(|| async {})).layer(layer);
    let app = app.into_make_service_with_connect_info::<SocketAddr>();
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
    address
}

fn forwarding(header: ForwardedHeader, from: Ipv4Addr, upstream: SocketAddr) -> Forwarding {
    Forwarding {
        upstream: upstream.port(),
        from,
        header: match header {
            ForwardedHeader::XForwardedFor => ForwardingHeader::XForwardedFor,
            ForwardedHeader::Forwarded => ForwardingHeader::Forwarded,
        },
    }
}

fn nginx(header: ForwardedHeader, upstream: SocketAddr) -> HttpProxy {
    HttpProxy::nginx(&forwarding(header, NGINX, upstream)).unwrap()
}

fn haproxy(header: ForwardedHeader, upstream: SocketAddr) -> HttpProxy {
    HttpProxy::haproxy(&forwarding(header, HAPROXY, upstream)).unwrap()
}

/// The status of a request from `client`, with what it claims in lines of both headers.
async fn status(client: impl Into<IpAddr>, server: SocketAddr, claims: &[(&str, &str)]) -> u16 {
    let client = Client::builder().no_proxy().local_address(client.into());
    let mut request = client.build().unwrap().get(format!("http://{server}/"));
    for (header, value) in claims {
        request = request.header(*header, *value);
    }
    request.send().await.unwrap().status().as_u16()
}

/// A client that claims to be another one with each request is admitted twice, and nobody else pays for it.
async fn assert_forging_has_no_effect(server: SocketAddr) {
    let claims: [&[(&str, &str)]; 9] = [
        &[],
        &[("x-forwarded-for", "192.0.2.1")],
        &[("x-forwarded-for", "192.0.2.2, 127.0.1.9")],
        &[("x-forwarded-for", "no address, , ")],
        &[
            ("x-forwarded-for", "192.0.2.3"),
            ("x-forwarded-for", "127.0.1.9"),
        ],
        &[("forwarded", "for=192.0.2.4")],
        &[("forwarded", "for=192.0.2.5, for=127.0.1.9")],
        &[("forwarded", "for=\"192.0.2.6")],
        &[
            ("forwarded", "for=_hidden;by=\\"),
            ("x-forwarded-for", "127.0.0.8"),
        ],
    ];
    let mut statuses = Vec::new();
    for claims in claims {
        statuses.push(status(CLIENT, server, claims).await);
    }
    assert_eq!(statuses, [200, 200, 429, 429, 429, 429, 429, 429, 429]);
    assert_eq!(status(OTHER, server, &[]).await, 200);
    assert_eq!(
        status(OTHER, server, &[("x-forwarded-for", "127.0.0.7")]).await,
        200
    );
    assert_eq!(status(OTHER, server, &[]).await, 429);
}

#[tokio::test]
async fn b58_behind_nginx_each_client_is_counted_by_its_own_address() {
    for header in HEADERS {
        let service = serve(by_network(header)).await;
        assert_forging_has_no_effect(nginx(header, service).v4()).await;
    }
}

#[tokio::test]
async fn b58_behind_haproxy_each_client_is_counted_by_its_own_address() {
    for header in HEADERS {
        let service = serve(by_network(header)).await;
        assert_forging_has_no_effect(haproxy(header, service).v4()).await;
    }
}

// Only `X-Forwarded-For`: of several lines of `Forwarded`, nginx before 1.23 hands on the first one alone, the client's.
#[tokio::test]
async fn behind_haproxy_in_front_of_nginx_each_client_is_counted_by_its_own_address() {
    let header = ForwardedHeader::XForwardedFor;
    for key in [by_network(header), ForwardedAddress::hops(2).unwrap()] {
        let service = serve(key).await;
        let inner = nginx(header, service);
        let outer = haproxy(header, inner.v4());
        assert_forging_has_no_effect(outer.v4()).await;
    }
}

#[tokio::test]
async fn a_client_that_goes_past_the_proxy_is_counted_by_its_own_address() {
    let service = serve(by_network(ForwardedHeader::XForwardedFor)).await;
    let proxy = nginx(ForwardedHeader::XForwardedFor, service);
    assert_eq!(status(CLIENT, proxy.v4(), &[]).await, 200);
    let claim = [("x-forwarded-for", "192.0.2.1")];
    assert_eq!(status(CLIENT, service, &claim).await, 200);
    assert_eq!(status(CLIENT, service, &claim).await, 429);
    assert_eq!(status(CLIENT, proxy.v4(), &[]).await, 429);
}

#[tokio::test]
async fn a_client_of_ipv6_is_told_by_both_headers_of_both_proxies() {
    for header in HEADERS {
        for start in [nginx, haproxy] {
            let service = serve(by_network(header)).await;
            let proxy = start(header, service);
            let mut statuses = Vec::new();
            for claim in ["for=192.0.2.1", "for=192.0.2.2", "for=192.0.2.3"] {
                let client = Ipv6Addr::LOCALHOST;
                statuses.push(status(client, proxy.v6(), &[("forwarded", claim)]).await);
            }
            assert_eq!(statuses, [200, 200, 429], "{header}");
            assert_eq!(status(CLIENT, proxy.v4(), &[]).await, 200, "{header}");
        }
    }
}
