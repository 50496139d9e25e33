//! Limits over an encrypted connection, and what a client gets that does not trust the server.
#![cfg(any(feature = "tls-rustls", feature = "tls-native-tls"))]
#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on fails where it stands"
)]

use std::fs;
use std::time::Duration;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use redis::aio::{ConnectionManager, ConnectionManagerConfig};
use redis::{Client, TlsCertificates};
use tempfile::TempDir;
use tollgate_core::{Algorithm, ErrorKind, FailureMode, Limiter, Policy, Quota};
use tollgate_redis::{RedisStore, redis, tollgate_core};
use tollgate_services::{RedisProgram, RedisServer, free_port};

type Authority = CertifiedIssuer<'static, KeyPair>;

/// A certificate authority that nobody else knows.
fn authority() -> Authority {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params
        .distinguished_name
        .push(DnType::CommonName, "an authority of one test");
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

/// A server with a certificate for 127.0.0.1.
///
/// It has a plain port too, through which a test sees what the server keeps.
struct TlsServer {
    server: RedisServer,
    tls_port: u16,
    _certificates: TempDir,
}

impl TlsServer {
    fn start(authority: &Authority) -> Self {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(["127.0.0.1".to_owned()]).unwrap();
        params
            .distinguished_name
            .push(DnType::CommonName, "a server of one test");
        let certificate = params.signed_by(&key, authority).unwrap();

        let directory = TempDir::new().unwrap();
        let file = |name: &str, content: String| {
            let path = directory.path().join(name);
            fs::write(&path, content).unwrap();
            path.to_str().unwrap().to_owned()
        };
        let tls_port = free_port().unwrap();
        let settings = [
            "--save",
            "",
            "--tls-port",
            &tls_port.to_string(),
            "--tls-cert-file",
            &file("server.crt", certificate.pem()),
            "--tls-key-file",
            &file("server.key", key.serialize_pem()),
            "--tls-ca-cert-file",
            &file("authority.crt", authority.pem()),
            "--tls-auth-clients",
            "no",
        ];
        let server = RedisServer::start_with(RedisProgram::System, &settings)
            .unwrap_or_else(|error| panic!("is `redis-server` built with TLS? {error:#}"));
        Self {
            server,
            tls_port,
            _certificates: directory,
        }
    }

    /// Three hits a day, by a client that trusts this authority and no other.
    fn limiter(&self, trusted: &Authority) -> Limiter<RedisStore> {
        // Several providers may be compiled in, and then rustls takes none by itself. The second test to come here finds
        // the first one's choice, which is the same.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let certificates = TlsCertificates {
            client_tls: None,
            root_cert: Some(trusted.pem().into_bytes()),
        };
        let url = format!("rediss://127.0.0.1:{}", self.tls_port);
        let client = Client::build_with_tls(url, certificates).unwrap();
        let patient = Some(Duration::from_secs(30));
        let config = ConnectionManagerConfig::new()
            .set_number_of_retries(0)
            .set_response_timeout(patient)
            .set_connection_timeout(patient);
        let manager = ConnectionManager::new_lazy_with_config(client, config).unwrap();
        let policy = Policy::new("p", Algorithm::Gcra, Quota::per_day(3)).unwrap();
        Limiter::new(RedisStore::new(manager), policy).on_failure(FailureMode::Closed)
    }

    /// How many keys the server holds, as it answers.
    fn keys(&self) -> String {
        self.server.command(&["DBSIZE"]).unwrap()
    }
}

#[tokio::test]
async fn hits_over_tls_are_counted() {
    let authority = authority();
    let server = TlsServer::start(&authority);
    let limiter = server.limiter(&authority);
    for left in [2, 1, 0] {
        let decision = limiter.hit("a").await.unwrap();
        assert!(decision.error().is_none(), "{decision:?}");
        assert_eq!((decision.is_allowed(), decision.remaining()), (true, left));
    }
    let fourth = limiter.hit("a").await.unwrap();
    assert!(fourth.error().is_none(), "{fourth:?}");
    assert!(!fourth.is_allowed());
    assert_eq!(server.keys(), ":1\r\n");
}

#[tokio::test]
async fn a_server_that_is_not_trusted_is_unavailable_and_nothing_is_charged() {
    let server_authority = authority();
    let server = TlsServer::start(&server_authority);
    let limiter = server.limiter(&authority());
    let decision = limiter.hit("a").await.unwrap();
    assert!(!decision.is_allowed());
    let error = decision.error().unwrap();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert!(!error.may_have_charged(), "{error}");
    let source = std::error::Error::source(error).unwrap().to_string();
    assert!(source.contains("certificate"), "{source}");
    assert_eq!(server.keys(), ":0\r\n");

    let trusting = server.limiter(&server_authority);
    assert_eq!(trusting.hit("a").await.unwrap().remaining(), 2);
}
