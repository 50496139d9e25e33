//! Limits over an encrypted connection, and what a client gets that does not trust the server.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::process::Command;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use tempfile::TempDir;
use tollgate_core::{Algorithm, Error, ErrorKind};
use tollgate_postgres::sqlx::postgres::{PgConnectOptions, PgPoolOptions, PgSslMode};
use tollgate_postgres::sqlx::{self, PgPool};
use tollgate_postgres::{PostgresStore, tollgate_core};
use tollgate_services::PostgresServer;

use crate::support::{hit, policy};

type Authority = CertifiedIssuer<'static, KeyPair>;

/// A certificate authority that nobody else knows.
fn authority() -> Authority {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let name = &mut params.distinguished_name;
    name.push(DnType::CommonName, "an authority of one test");
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

/// A server with a certificate for `name`, and the folder that holds it.
fn server(authority: &Authority, name: &str) -> (PostgresServer, TempDir) {
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new([name.to_owned()]).unwrap();
    let certificate = params.signed_by(&key, authority).unwrap();
    let directory = TempDir::new().unwrap();
    let file = |name: &str, content: String| {
        let path = directory.path().join(name);
        fs::write(&path, content).unwrap();
        // The server takes no key that others may read.
        fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let certificate = file("server.crt", certificate.pem());
    let key = file("server.key", key.serialize_pem());
    if fs::metadata(&key).unwrap().uid() == 0 {
        // It does not serve as root, and has to read them.
        let mut give = Command::new("chown");
        let given = give
            .args(["-R", PostgresServer::NAME])
            .arg(directory.path());
        assert!(given.status().unwrap().success());
    }
    let settings = [
        "fsync=off".to_owned(),
        "ssl=on".to_owned(),
        format!("ssl_cert_file={certificate}"),
        format!("ssl_key_file={key}"),
    ];
    let settings: Vec<&str> = settings.iter().map(String::as_str).collect();
    (PostgresServer::start_with(&settings).unwrap(), directory)
}

/// A pool that takes the server for whom it says it is only if this authority says so too.
fn pool(server: &PostgresServer, trusted: &Authority) -> PgPool {
    let options: PgConnectOptions = server.url().parse().unwrap();
    let options = options
        .ssl_mode(PgSslMode::VerifyFull)
        .ssl_root_cert_from_pem(trusted.pem().into_bytes());
    PgPoolOptions::new().connect_lazy_with(options)
}

async fn ask(pool: PgPool) -> Result<bool, Error> {
    let policy = policy(Algorithm::Gcra, 2);
    let verdicts = hit(&PostgresStore::new(pool), &policy, "s", &["a"]).await?;
    Ok(verdicts.is_allowed())
}

#[tokio::test]
async fn hits_over_tls_are_counted() {
    let authority = authority();
    let (server, _certificates) = server(&authority, "127.0.0.1");
    let pool = pool(&server, &authority);
    let encrypted = "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()";
    let encrypted: bool = sqlx::query_scalar(encrypted)
        .fetch_one(&pool)
        .await
        .unwrap();
    assert!(encrypted);
    PostgresStore::new(pool.clone())
        .ensure_schema()
        .await
        .unwrap();
    for allowed in [true, true, false] {
        assert_eq!(ask(pool.clone()).await.unwrap(), allowed);
    }
}

async fn is_refused(server: &PostgresServer, trusted: &Authority) {
    let plain = support::pool(server, 1);
    PostgresStore::new(plain.clone())
        .ensure_schema()
        .await
        .unwrap();
    let error = ask(pool(server, trusted)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert!(!error.may_have_charged());
    let source = std::error::Error::source(&error).unwrap().to_string();
    assert!(source.contains("certificate"), "{source}");
    for allowed in [true, true, false] {
        assert_eq!(ask(plain.clone()).await.unwrap(), allowed);
    }
}

#[tokio::test]
async fn a_server_that_is_not_trusted_is_unavailable_and_nothing_is_charged() {
    let (server, _certificates) = server(&authority(), "127.0.0.1");
    is_refused(&server, &authority()).await;
}

#[tokio::test]
async fn a_certificate_of_another_name_is_not_taken() {
    let authority = authority();
    let (server, _certificates) = server(&authority, "elsewhere.example");
    is_refused(&server, &authority).await;
}
