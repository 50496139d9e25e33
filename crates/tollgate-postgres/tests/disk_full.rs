//! A disk without room for another row. It needs the right to mount a small file system.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::path::Path;
use std::process::{Command, Stdio};

use libtest_mimic::{Arguments, Trial};
use tempfile::TempDir;
use tollgate_core::{
    Algorithm, Batch, Check, Cost, ErrorKind, Key, Op, Policy, PolicyDecision, Quota, Space, Store,
};
use tollgate_postgres::sqlx::error::DatabaseError;
use tollgate_postgres::{PostgresStore, sqlx, tollgate_core};
use tollgate_services::PostgresServer;

use crate::support::{hit, run, session, store_on};

/// More than there is room for, and so slow that none of it flows back during the test.
const LIMIT: u64 = 9_600;

/// A file system of a few megabytes, as long as it lives.
struct SmallDisk(TempDir);

impl SmallDisk {
    /// `None` without the right to mount it.
    fn mount() -> Option<Self> {
        let folder = TempDir::new().unwrap();
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=4m", "tollgate-test"]);
        mount.arg(folder.path()).stderr(Stdio::null());
        let mounted = mount.status().is_ok_and(|status| status.success());
        mounted.then(|| Self(folder))
    }

    fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // If it cannot go now, the folder stays, and the next start of the machine takes both.
        let _ = Command::new("umount").arg("-l").arg(self.path()).status();
    }
}

fn main() {
    let disk = SmallDisk::mount();
    let trial = Trial::test("a_full_disk_is_an_overload_and_charges_nothing", || {
        let disk = SmallDisk::mount().unwrap();
        let runtime = tokio::runtime::Runtime::new().unwrap();
        runtime.block_on(a_full_disk_is_an_overload_and_charges_nothing(&disk));
        Ok(())
    });
    let trial = trial.with_ignored_flag(disk.is_none());
    drop(disk);
    libtest_mimic::run(&Arguments::from_args(), vec![trial]).exit();
}

async fn a_full_disk_is_an_overload_and_charges_nothing(disk: &SmallDisk) {
    let server = PostgresServer::start().unwrap();
    let give = ["-R", PostgresServer::NAME];
    let given = Command::new("chown").args(give).arg(disk.path()).status();
    assert!(given.unwrap().success());
    let store = store_on(&server, 4).await;
    let schema = store.schema().quoted();
    let mut session = session(&server).await;
    let place = disk.path().display();
    for sql in [
        format!("CREATE TABLESPACE small LOCATION '{place}'"),
        format!("ALTER TABLE {schema}.counters SET TABLESPACE small"),
        format!("ALTER TABLE {schema}.logs SET TABLESPACE small"),
        "CREATE TABLE filler (line text) TABLESPACE small".to_owned(),
    ] {
        run(&mut session, sql).await;
    }
    let full = loop {
        let page = "INSERT INTO filler SELECT repeat('x', 1000) FROM generate_series(1, 7)";
        if let Err(error) = sqlx::raw_sql(page).execute(&mut session).await {
            break error;
        }
    };
    let code = full.as_database_error().and_then(DatabaseError::code);
    assert_eq!(code.as_deref(), Some("53100"), "{full}");

    for algorithm in [Algorithm::TokenBucket, Algorithm::SlidingLog] {
        let policy = policy(algorithm);
        let mut admitted = 0;
        // New rows find room on the pages that are there, for a while.
        let error = loop {
            let name = format!("{admitted:0200}");
            match hit(&store, &policy, "s", &["k", &name]).await {
                Ok(verdicts) => admitted += u64::from(verdicts.is_allowed()),
                Err(error) => break error,
            }
        };
        assert_eq!(error.kind(), ErrorKind::Overloaded, "{error}");
        assert!(!error.may_have_charged());
        assert_eq!(remaining(&store, &policy).await, LIMIT - admitted);
    }

    run(&mut session, "DROP TABLE filler".to_owned()).await;
    for algorithm in [Algorithm::TokenBucket, Algorithm::SlidingLog] {
        let policy = policy(algorithm);
        let left = remaining(&store, &policy).await;
        hit(&store, &policy, "s", &["k", "another"]).await.unwrap();
        assert_eq!(remaining(&store, &policy).await, left - 1);
    }
}

fn policy(algorithm: Algorithm) -> Policy {
    let quota = Quota::new(LIMIT, Quota::MAX_PERIOD).unwrap();
    Policy::new("p", algorithm, quota).unwrap()
}

/// What is left to the key that every hit names.
async fn remaining(store: &PostgresStore, policy: &Policy) -> u64 {
    let space = Space::new("", "s", policy);
    let check = Check {
        key: Key::new(&space, b"k").unwrap(),
        policy,
        op: Op::Peek(Cost::ONE),
    };
    let verdicts = store.apply(Batch::of_one(&check)).await.unwrap();
    let verdict = verdicts.as_slice()[0];
    PolicyDecision::from_verdict(policy, verdict, verdicts.at(), Cost::ONE, false).remaining()
}
