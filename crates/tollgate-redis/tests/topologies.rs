//! Clusters, sentinels and pools.
#![cfg(all(feature = "cluster", feature = "sentinel", feature = "deadpool"))]
#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on fails where it stands"
)]

mod common;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use futures::future::join_all;
use redis::AsyncConnectionConfig;
use redis::cluster::{ClusterClient, ClusterClientBuilder};
use redis::sentinel::{SentinelClient, SentinelServerType};
use tollgate_core::{
    Algorithm, Batch, Check, Cost, ErrorKind, FailureMode, Key, Limiter, Op, Policy, Quota, Space,
    Store,
};
use tollgate_redis::{Connection, RedisStore, deadpool_redis, redis, tollgate_core};
use tollgate_services::{RedisCluster, RedisProgram, RedisSentinel};

fn cluster() -> &'static RedisCluster {
    static CLUSTER: OnceLock<RedisCluster> = OnceLock::new();
    CLUSTER.get_or_init(|| RedisCluster::start(RedisProgram::System).unwrap())
}

fn cluster_client() -> ClusterClient {
    ClusterClientBuilder::new(cluster().urls())
        .retries(0)
        .response_timeout(Duration::from_secs(30))
        .build()
        .unwrap()
}

fn policy(algorithm: Algorithm) -> Policy {
    Policy::new("p", algorithm, Quota::per_day(20)).unwrap()
}

fn limiter(
    connection: impl Into<Connection>,
    prefix: &str,
    algorithm: Algorithm,
) -> Limiter<RedisStore> {
    Limiter::new(RedisStore::new(connection), policy(algorithm))
        .prefix(prefix)
        .on_failure(FailureMode::Closed)
}

async fn admits_exactly(limiter: Limiter<RedisStore>) {
    let limiter = Arc::new(limiter);
    let tasks = (0..40).map(|_| {
        let limiter = limiter.clone();
        tokio::spawn(async move {
            let mut admitted = 0;
            for subject in 0..30 {
                let decision = limiter.hit(format!("subject {subject}")).await.unwrap();
                assert!(!decision.is_degraded(), "{:?}", decision.error());
                admitted += u32::from(decision.is_allowed());
            }
            admitted
        })
    });
    let admitted: u32 = join_all(tasks).await.into_iter().map(Result::unwrap).sum();
    assert_eq!(admitted, 30 * 20);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_admits_exactly_over_all_its_slots() {
    for algorithm in Algorithm::ALL {
        admits_exactly(limiter(
            cluster_client(),
            &format!("c-{algorithm}"),
            algorithm,
        ))
        .await;
    }
    let store = RedisStore::new(cluster_client());
    assert_eq!(store.reset_prefix("c-gcra").await.unwrap(), 30);
    assert_eq!(store.reset_prefix("c-gcra").await.unwrap(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pool_of_cluster_connections_admits_exactly() {
    let pool = deadpool_redis::cluster::Config::from_urls(cluster().urls())
        .create_pool(Some(deadpool_redis::Runtime::Tokio1))
        .unwrap();
    admits_exactly(limiter(pool, "cluster-pool", Algorithm::TokenBucket)).await;
}

#[tokio::test]
async fn a_connected_cluster_serves_as_well() {
    let connection = cluster_client().get_async_connection().await.unwrap();
    let limiter = limiter(connection, "connected", Algorithm::SlidingLog);
    assert_eq!(limiter.hit("a").await.unwrap().remaining(), 19);
    assert!(limiter.reset("a").await.unwrap());
    assert_eq!(limiter.hit("a").await.unwrap().remaining(), 19);
}

#[tokio::test]
async fn a_cluster_judges_one_subject_under_many_policies_but_not_many_subjects_as_one() {
    let store = RedisStore::new(cluster_client());
    assert!(!store.capabilities().atomic_any_keys);
    let policies = Algorithm::ALL.map(policy);
    let spaces: Vec<_> = policies
        .iter()
        .map(|policy| Space::new("b", policy.algorithm().name(), policy))
        .collect();
    let check = |index: usize, subject| Check {
        key: Key::new(&spaces[index], subject).unwrap(),
        policy: &policies[index],
        op: Op::Hit(Cost::ONE),
    };
    let one_subject: Vec<_> = (0..6).map(|index| check(index, b"a" as &[u8])).collect();
    let verdicts = store
        .apply(Batch::new(&one_subject).unwrap())
        .await
        .unwrap();
    assert!(verdicts.is_allowed());
    let two = [check(0, b"a"), check(1, b"b")];
    let error = store.apply(Batch::new(&two).unwrap()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.to_string().contains("one subject"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pool_admits_exactly() {
    let pool = deadpool_redis::Config::from_url(common::server().url())
        .create_pool(Some(deadpool_redis::Runtime::Tokio1))
        .unwrap();
    admits_exactly(limiter(pool, "pool", Algorithm::SlidingWindow)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_failover_the_new_master_is_found_and_no_count_is_lost() {
    let mut group =
        tokio::task::spawn_blocking(|| RedisSentinel::start(RedisProgram::System).unwrap())
            .await
            .unwrap();
    let client = |urls: Vec<String>, name: String| {
        SentinelClient::build(urls, name, None, SentinelServerType::Master).unwrap()
    };
    let name = RedisSentinel::MASTER.to_owned();
    let shared = limiter(
        client(group.urls(), name.clone()),
        "failover",
        Algorithm::FixedWindow,
    );
    let pool = deadpool_redis::sentinel::Config::from_urls(
        group.urls(),
        name,
        deadpool_redis::sentinel::SentinelServerType::Master,
    );
    let pool = pool
        .create_pool(Some(deadpool_redis::Runtime::Tokio1))
        .unwrap();
    let pooled = limiter(pool, "failover", Algorithm::FixedWindow);
    for left in (10..20).rev() {
        assert_eq!(shared.hit("a").await.unwrap().remaining(), left);
    }
    assert_eq!(pooled.peek("a").await.unwrap().remaining(), 10);
    // What the replica has not got yet would be lost with the master, whoever stores it.
    group.servers()[0].command(&["WAIT", "1", "5000"]).unwrap();
    let group = tokio::task::spawn_blocking(move || {
        group.kill_master().unwrap();
        group
    })
    .await
    .unwrap();
    let killed = Instant::now();
    for limiter in [&shared, &pooled] {
        loop {
            let decision = limiter.peek("a").await.unwrap();
            match decision.error() {
                None => break assert_eq!(decision.remaining(), 10),
                Some(error) => assert!(error.is_transient(), "{error:?}"),
            }
            assert!(killed.elapsed() < Duration::from_secs(30), "no new master");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
    assert_eq!(shared.hit("a").await.unwrap().remaining(), 9);
    drop(group);
}

#[tokio::test]
async fn a_master_behind_sentinels_is_waited_for_as_long_as_its_connection_says() {
    let group = tokio::task::spawn_blocking(|| RedisSentinel::start(RedisProgram::System).unwrap())
        .await
        .unwrap();
    // A busy machine is no failover.
    group.set_down_after(Duration::from_secs(60)).unwrap();
    let limiter = |patience| {
        let name = RedisSentinel::MASTER.to_owned();
        let master = SentinelServerType::Master;
        let client = SentinelClient::build(group.urls(), name, None, master).unwrap();
        let config = AsyncConnectionConfig::new().set_response_timeout(Some(patience));
        let connection = Connection::sentinel_with_config(client, config);
        limiter(connection, "patience", Algorithm::Gcra)
    };
    let (patient, hasty) = (
        limiter(Duration::from_secs(30)),
        limiter(Duration::from_millis(100)),
    );
    assert_eq!(patient.hit("a").await.unwrap().remaining(), 19);
    let master = &group.servers()[0];
    master
        .command(&["CLIENT", "PAUSE", "30000", "WRITE"])
        .unwrap();
    let pause = async {
        let never = hasty.hit("b").await.unwrap();
        assert_eq!(never.error().unwrap().kind(), ErrorKind::Timeout);
        // Longer than the driver waits by itself.
        tokio::time::sleep(Duration::from_millis(600)).await;
        master.command(&["CLIENT", "UNPAUSE"]).unwrap();
    };
    let (late, ()) = tokio::join!(patient.hit("a"), pause);
    assert_eq!(late.unwrap().remaining(), 18);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slot_that_moves_under_load_loses_and_doubles_nothing() {
    let quota = Policy::new("p", Algorithm::TokenBucket, Quota::per_day(1_000)).unwrap();
    let limiter = Limiter::new(RedisStore::new(cluster_client()), quota).prefix("moving");
    let limiter = Arc::new(limiter.on_failure(FailureMode::Closed));
    let name = "moving:b1::p:{a}";
    let moved = Arc::new(AtomicBool::new(false));
    let done = moved.clone();
    let movement = tokio::task::spawn_blocking(move || {
        for _ in 0..3 {
            std::thread::sleep(Duration::from_millis(60));
            cluster().move_slot_of(name).unwrap();
        }
        done.store(true, Ordering::Relaxed);
    });
    let load = (0..8).map(|_| {
        let (limiter, moved) = (limiter.clone(), moved.clone());
        tokio::spawn(async move {
            let mut admitted = 0;
            loop {
                let decision = limiter.hit("a").await.unwrap();
                assert!(!decision.is_degraded(), "{:?}", decision.error());
                admitted += u32::from(decision.is_allowed());
                if !decision.is_allowed() && moved.load(Ordering::Relaxed) {
                    return admitted;
                }
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        })
    });
    let admitted: u32 = join_all(load).await.into_iter().map(Result::unwrap).sum();
    movement.await.unwrap();
    assert_eq!(admitted, 1_000);
}
