//! What a client and a server see through the proxy, over real sockets.
#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on fails where it stands"
)]

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::num::NonZeroU64;
use std::thread;
use std::time::{Duration, Instant};

use tollgate_faults::{Fault, Proxy};

/// A server that greets with its name and then sends back what it hears.
fn echo(name: &'static str) -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            thread::spawn(move || {
                stream.write_all(name.as_bytes()).unwrap();
                let mut reader = stream.try_clone().unwrap();
                // It ends when the client does, in whatever way.
                let _ = std::io::copy(&mut reader, &mut stream);
            });
        }
    });
    address
}

fn connect(proxy: &Proxy) -> TcpStream {
    let mut stream = TcpStream::connect(proxy.address()).unwrap();
    patient(&mut stream);
    stream
}

fn patient(stream: &mut TcpStream) {
    let timeout = Some(Duration::from_secs(20));
    stream.set_read_timeout(timeout).unwrap();
}

fn read(stream: &mut TcpStream, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    stream.read_exact(&mut bytes).unwrap();
    bytes
}

/// A connection on which one round trip has been made.
fn greeted(proxy: &Proxy) -> TcpStream {
    let mut stream = connect(proxy);
    assert_eq!(read(&mut stream, 1), b"a");
    stream
}

fn says_nothing(stream: &mut TcpStream) {
    let timeout = Some(Duration::from_millis(100));
    stream.set_read_timeout(timeout).unwrap();
    let error = stream.read(&mut [0]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::WouldBlock);
    patient(stream);
}

#[test]
fn without_a_fault_every_byte_passes_both_ways_and_is_counted() {
    let proxy = Proxy::start(echo("a")).unwrap();
    let mut stream = greeted(&proxy);
    let sent: Vec<u8> = (0..=255).cycle().take(1_000_000).collect();
    let mut writer = stream.try_clone().unwrap();
    let bytes = sent.clone();
    let sender = thread::spawn(move || writer.write_all(&bytes).unwrap());
    assert_eq!(read(&mut stream, sent.len()), sent);
    sender.join().unwrap();
    let counts = proxy.counts();
    assert_eq!((counts.accepted, counts.open), (1, 1));
    assert_eq!(counts.from_clients, 1_000_000);
    assert_eq!(counts.from_server, 1_000_001);
}

#[test]
fn a_peer_that_closes_is_seen_to_close() {
    let proxy = Proxy::start(echo("a")).unwrap();
    let mut stream = greeted(&proxy);
    stream.write_all(b"last").unwrap();
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).unwrap();
    assert_eq!(rest, b"last");
    drop(stream);
    while proxy.counts().open > 0 {
        thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn latency_delays_without_losing_order_and_ends() {
    let proxy = Proxy::start(echo("a")).unwrap();
    let mut stream = greeted(&proxy);
    let (to_server, to_client) = (Duration::from_millis(100), Duration::from_millis(150));
    proxy
        .set(Fault::Latency {
            to_server,
            to_client,
        })
        .unwrap();
    let asked = Instant::now();
    for byte in b"0123456789" {
        stream.write_all(&[*byte]).unwrap();
    }
    assert_eq!(read(&mut stream, 10), b"0123456789");
    let took = asked.elapsed();
    assert!(took >= to_server + to_client, "{took:?}");
    proxy
        .set(Fault::Latency {
            to_server: Duration::from_secs(3600),
            to_client: Duration::ZERO,
        })
        .unwrap();
    proxy.heal().unwrap();
    stream.write_all(b"x").unwrap();
    assert_eq!(read(&mut stream, 1), b"x");
}

#[test]
fn refusal_turns_new_clients_away_and_leaves_open_connections_alone() {
    let proxy = Proxy::start(echo("a")).unwrap();
    let mut stream = greeted(&proxy);
    for _ in 0..3 {
        proxy.set(Fault::Refuse).unwrap();
        let refused = TcpStream::connect(proxy.address()).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
        stream.write_all(b"x").unwrap();
        assert_eq!(read(&mut stream, 1), b"x");
        proxy.heal().unwrap();
        greeted(&proxy);
    }
}

#[test]
fn a_reset_reaches_every_open_connection_and_no_later_one() {
    let proxy = Proxy::start(echo("a")).unwrap();
    let mut streams: Vec<_> = (0..5).map(|_| greeted(&proxy)).collect();
    proxy.reset_connections();
    for stream in &mut streams {
        let error = stream.read(&mut [0]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    }
    greeted(&proxy);
}

#[test]
fn silence_keeps_connections_open_and_holds_back_what_passes_later() {
    let proxy = Proxy::start(echo("a")).unwrap();
    let mut stream = greeted(&proxy);
    proxy.set(Fault::Silence).unwrap();
    stream.write_all(b"held").unwrap();
    says_nothing(&mut stream);
    let mut newcomer = connect(&proxy);
    says_nothing(&mut newcomer);
    assert_eq!(proxy.counts().open, 2);
    assert_eq!(proxy.counts().from_clients, 4);
    proxy.heal().unwrap();
    assert_eq!(read(&mut stream, 4), b"held");
    assert_eq!(read(&mut newcomer, 1), b"a");
}

#[test]
fn a_truncated_reply_ends_where_it_was_told_to() {
    let proxy = Proxy::start(echo("a")).unwrap();
    let mut stream = greeted(&proxy);
    proxy.set(Fault::Truncate { after: 3 }).unwrap();
    stream.write_all(b"12").unwrap();
    assert_eq!(read(&mut stream, 2), b"12");
    stream.write_all(b"34567").unwrap();
    let mut rest = Vec::new();
    // The end is a close, or a reset where the client had more to say.
    let _ = stream.read_to_end(&mut rest);
    assert_eq!(rest, b"3");
    proxy.heal().unwrap();
    greeted(&proxy);
}

#[test]
fn garbled_replies_are_flipped_at_the_same_places_and_requests_are_not() {
    let proxy = Proxy::start(echo("a")).unwrap();
    let mut stream = greeted(&proxy);
    let every = NonZeroU64::new(4).unwrap();
    proxy.set(Fault::Garble { every, mask: 0x20 }).unwrap();
    for _ in 0..2 {
        stream.write_all(b"abcd").unwrap();
        assert_eq!(read(&mut stream, 4), b"Abcd");
    }
    proxy.heal().unwrap();
    stream.write_all(b"abcd").unwrap();
    assert_eq!(read(&mut stream, 4), b"abcd");
}

#[test]
fn a_redirected_proxy_leads_new_connections_elsewhere() {
    let proxy = Proxy::start(echo("a")).unwrap();
    let mut stream = greeted(&proxy);
    proxy.redirect(echo("b"));
    stream.write_all(b"x").unwrap();
    assert_eq!(read(&mut stream, 1), b"x");
    assert_eq!(read(&mut connect(&proxy), 1), b"b");
}

#[test]
fn a_server_that_is_not_there_resets_its_clients() {
    let nobody = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = nobody.local_addr().unwrap();
    drop(nobody);
    let proxy = Proxy::start(address).unwrap();
    let error = connect(&proxy).read(&mut [0]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
}

#[test]
fn a_server_that_resets_is_seen_to_reset() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let proxy = Proxy::start(listener.local_addr().unwrap()).unwrap();
    let mut stream = connect(&proxy);
    let (server, _) = listener.accept().unwrap();
    stream.write_all(b"never read").unwrap();
    // A socket that is closed with bytes unread resets its peer.
    while server.peek(&mut [0]).unwrap() == 0 {}
    drop(server);
    let error = stream.read(&mut [0]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
}

#[test]
fn a_dropped_proxy_is_gone_with_its_connections() {
    let proxy = Proxy::start(echo("a")).unwrap();
    let address = proxy.address();
    let mut stream = greeted(&proxy);
    proxy.set(Fault::Silence).unwrap();
    stream.write_all(b"held").unwrap();
    drop(proxy);
    assert!(!matches!(stream.read(&mut [0]), Ok(1..)));
    assert!(TcpStream::connect(address).is_err());
}
