//! What lies on the server: keys that expire, keys that others spoiled, and scripts that were forgotten.
#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on fails where it stands"
)]

mod common;

use std::time::Duration;

use futures::future::join_all;
use redis::AsyncCommands;
use redis::aio::ConnectionManager;
use tollgate_core::{
    Algorithm, Batch, Check, Cost, ErrorKind, FailureMode, Key, Limiter, ManualClock, Op, Policy,
    Quota, Space, Store,
};
use tollgate_redis::{RedisStore, redis, tollgate_core};

fn policy(algorithm: Algorithm, limit: u64, period: Duration) -> Policy {
    Policy::new("p", algorithm, Quota::new(limit, period).unwrap()).unwrap()
}

fn limiter(prefix: &str, policy: Policy) -> Limiter<RedisStore> {
    Limiter::new(common::store(), policy)
        .prefix(prefix)
        .on_failure(FailureMode::Closed)
}

fn client() -> ConnectionManager {
    common::manager(&common::server().url())
}

/// The names of all keys under a prefix.
async fn keys(prefix: &str) -> Vec<String> {
    client().keys(format!("{prefix}:*")).await.unwrap()
}

async fn only_key(prefix: &str) -> String {
    let found = keys(prefix).await;
    assert_eq!(found.len(), 1, "{found:?}");
    found.into_iter().next().unwrap()
}

#[tokio::test]
async fn every_key_lives_until_its_state_is_as_good_as_new_and_not_for_ever() {
    for algorithm in Algorithm::ALL {
        let prefix = format!("lives-{algorithm}");
        let limiter = limiter(&prefix, policy(algorithm, 10, Duration::from_secs(100)));
        let decision = limiter.hit_n("a", 5).await.unwrap();
        let lives: i64 = client().pttl(only_key(&prefix).await).await.unwrap();
        let needed = i64::try_from(decision.reset_after().as_millis()).unwrap();
        assert!(lives > needed - 2_000, "{algorithm}: {lives} ms");
        assert!(lives < 2 * 100_000 + 1_000, "{algorithm}: {lives} ms");
    }
}

#[tokio::test]
async fn the_fastest_quota_still_outlives_its_state() {
    let quota = policy(Algorithm::Gcra, 1_000, Duration::from_millis(1));
    let limiter = limiter("fastest", quota);
    for _ in 0..50 {
        assert!(limiter.hit("a").await.unwrap().is_allowed());
    }
}

#[tokio::test]
async fn a_key_that_lost_its_expiry_gets_one_from_the_next_hit_even_a_denied_one() {
    for algorithm in Algorithm::ALL {
        let prefix = format!("lost-{algorithm}");
        let limiter = limiter(&prefix, policy(algorithm, 2, Duration::from_secs(60)));
        for allowed in [true, true, false] {
            assert_eq!(limiter.hit("a").await.unwrap().is_allowed(), allowed);
            let key = only_key(&prefix).await;
            let _: () = client().persist(&key).await.unwrap();
            assert_eq!(client().pttl::<_, i64>(&key).await.unwrap(), -1);
            assert!(!limiter.hit_n("a", 2).await.unwrap().is_allowed());
            let lives: i64 = client().pttl(&key).await.unwrap();
            assert!((1..=121_000).contains(&lives), "{algorithm}: {lives} ms");
        }
    }
}

#[tokio::test]
async fn a_peek_creates_nothing_and_a_denied_hit_neither() {
    for algorithm in Algorithm::ALL {
        let prefix = format!("nothing-{algorithm}");
        let limiter = limiter(&prefix, policy(algorithm, 2, Duration::from_secs(60)));
        assert!(limiter.peek("a").await.unwrap().is_allowed());
        assert!(limiter.hit_n("a", 3).await.unwrap().is_never());
        assert!(keys(&prefix).await.is_empty(), "{algorithm}");
    }
}

#[tokio::test]
async fn a_key_of_another_program_is_named_and_spoils_nobody_elses_hit() {
    let limiter = limiter(
        "spoiled",
        policy(Algorithm::TokenBucket, 100, Duration::from_secs(60)),
    );
    let name = |subject: &str| format!("spoiled:b1::p:{{{subject}}}");
    let _: () = client().lpush(name("list"), "x").await.unwrap();
    let _: () = client().set(name("text"), "10").await.unwrap();
    let subjects = ["a", "list", "text", "list", "b", "text", "text", "a"];
    let hits = join_all(subjects.map(|subject| limiter.hit(subject))).await;
    for (subject, decision) in subjects.iter().zip(hits) {
        let decision = decision.unwrap();
        if ["a", "b"].contains(subject) {
            assert!(
                decision.is_allowed() && !decision.is_degraded(),
                "{subject}"
            );
            continue;
        }
        let error = decision.error().unwrap();
        assert_eq!(error.kind(), ErrorKind::Corrupt);
        assert!(!error.may_have_charged());
        assert!(error.to_string().contains(&name(subject)), "{error}");
    }
    assert!(limiter.reset("list").await.unwrap());
    assert!(limiter.hit("list").await.unwrap().is_allowed());
}

#[tokio::test]
async fn one_bad_key_of_a_batch_keeps_the_whole_batch_from_being_charged() {
    let store = common::store();
    let policy = policy(Algorithm::SlidingLog, 5, Duration::from_secs(60));
    let space = Space::new("bad-batch", "", &policy);
    let _: () = client().set("bad-batch:l1::p:{bad}", "x").await.unwrap();
    let check = |subject| Check {
        key: Key::new(&space, subject).unwrap(),
        policy: &policy,
        op: Op::Hit(Cost::ONE),
    };
    let checks = [check(b"good" as &[u8]), check(b"bad")];
    let error = store.apply(Batch::new(&checks).unwrap()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert_eq!(keys("bad-batch").await, ["bad-batch:l1::p:{bad}"]);
}

#[tokio::test]
async fn a_forgotten_script_is_sent_again_and_charges_once() {
    // A server of its own: nobody else's script is to be forgotten.
    let server = tollgate_services::RedisServer::start(tollgate_services::RedisProgram::System);
    let server = server.unwrap();
    let store = RedisStore::new(common::manager(&server.url()));
    let limiter = Limiter::new(
        store,
        policy(Algorithm::FixedWindow, 10, Duration::from_secs(60)),
    );
    for left in (0..10).rev() {
        let decision = limiter.hit("a").await.unwrap();
        assert!(!decision.is_degraded());
        assert_eq!(decision.remaining(), left);
        server.command(&["SCRIPT", "FLUSH"]).unwrap();
    }
}

#[tokio::test]
async fn reset_by_prefix_takes_no_neighbour_with_it() {
    let quota = || policy(Algorithm::TokenBucket, 10, Duration::from_secs(60));
    let mut limiters = Vec::new();
    for prefix in ["wipe", "wipe2", "wip*", "w?pe", "wipe:x"] {
        let limiter = limiter(prefix, quota());
        for subject in ["a", "b*", "{c}"] {
            assert!(limiter.hit(subject).await.unwrap().is_allowed());
        }
        limiters.push(limiter);
    }
    let store = common::store();
    assert_eq!(store.reset_prefix("wip*").await.unwrap(), 3);
    assert_eq!(store.reset_prefix("w?pe").await.unwrap(), 3);
    assert_eq!(store.reset_prefix("wipe").await.unwrap(), 3);
    assert_eq!(limiters[1].peek("a").await.unwrap().remaining(), 9);
    assert_eq!(limiters[4].peek("{c}").await.unwrap().remaining(), 9);
}

#[tokio::test]
async fn one_hit_of_a_huge_cost_is_one_entry_of_a_log() {
    let limiter = limiter(
        "huge",
        policy(Algorithm::SlidingLog, 1_000_000, Duration::from_secs(60)),
    )
    .clock(ManualClock::default());
    assert!(limiter.hit("a").await.unwrap().is_allowed());
    assert!(limiter.hit_n("a", 999_999).await.unwrap().is_allowed());
    assert!(!limiter.hit("a").await.unwrap().is_allowed());
    let stored: usize = client().strlen(only_key("huge").await).await.unwrap();
    assert!(stored < 64, "{stored} bytes");
}
