//! Fixed windows on a server that has INCREX.
#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on fails where it stands"
)]

mod common;

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures::future::join_all;
use redis::AsyncCommands;
use redis::aio::ConnectionManager;
use tollgate_core::{
    Algorithm, Batch, Check, Cost, Decision, ErrorKind, FailureMode, Key, Limiter, Op, Policy,
    Quota, Source, Space, Store, Timestamp,
};
use tollgate_redis::{RedisStore, redis, tollgate_core};
use tollgate_services::{RedisProgram, RedisServer};

fn server() -> &'static RedisServer {
    static SERVER: OnceLock<RedisServer> = OnceLock::new();
    SERVER.get_or_init(|| RedisServer::start(RedisProgram::Redis8).unwrap())
}

fn client() -> ConnectionManager {
    common::manager(&server().url())
}

fn policy(limit: u64, period: Duration) -> Policy {
    Policy::new(
        "p",
        Algorithm::FixedWindow,
        Quota::new(limit, period).unwrap(),
    )
    .unwrap()
}

fn limiter(prefix: &str, limit: u64, period: Duration) -> Limiter<RedisStore> {
    Limiter::new(RedisStore::new(client()), policy(limit, period))
        .prefix(prefix)
        .on_failure(FailureMode::Closed)
}

const MINUTE: Duration = Duration::from_secs(60);

fn name(prefix: &str, subject: &str) -> String {
    format!("{prefix}:i1::p:{{{subject}}}")
}

fn native(decision: &Decision<'_>) -> bool {
    decision.source() == Source::NativeCounter
}

#[tokio::test]
async fn a_hit_is_counted_by_the_server_itself_and_a_peek_sees_it() {
    let limiter = limiter("sees", 10, MINUTE);
    let hit = limiter.hit_n("a", 3).await.unwrap();
    assert!(native(&hit) && hit.is_allowed());
    assert_eq!(hit.remaining(), 7);
    // The window began when it was counted, and its end is what the server says, to the millisecond. The clock is read
    // behind that: an answer that comes late says so.
    let mut end = redis::cmd("PEXPIRETIME");
    let end: u64 = end
        .arg(name("sees", "a"))
        .query_async(&mut client())
        .await
        .unwrap();
    let end = Timestamp::from_micros((end + 1) * 1_000).unwrap();
    assert_eq!(hit.reset_at(), Some(end));
    let began = Timestamp::from_micros(end.as_micros() - 60_000_000).unwrap();
    assert!(hit.at().unwrap() >= began);
    assert_eq!(hit.at().unwrap() + hit.reset_after(), end);
    let peek = limiter.peek_n("a", 8).await.unwrap();
    assert_eq!(
        (peek.source(), peek.is_allowed(), peek.remaining()),
        (Source::Store, false, 7)
    );
    let denied = limiter.hit_n("a", 8).await.unwrap();
    assert!(native(&denied) && !denied.is_allowed());
    assert_eq!(denied.remaining(), 7);
    assert_eq!(denied.reset_at(), peek.reset_at());
    assert_eq!(denied.reset_at(), hit.reset_at());
    assert!(limiter.hit_n("a", 11).await.unwrap().is_never());
}

#[tokio::test]
async fn a_denied_first_hit_creates_nothing() {
    let limiter = limiter("creates", 5, MINUTE);
    let decision = limiter.hit_n("a", 6).await.unwrap();
    assert!(decision.is_never());
    assert_eq!(
        (decision.remaining(), decision.reset_after()),
        (5, Duration::ZERO)
    );
    assert!(
        !client()
            .exists::<_, bool>(name("creates", "a"))
            .await
            .unwrap()
    );
    let blocked = self::limiter("blocked", 0, MINUTE);
    assert!(blocked.hit("a").await.unwrap().is_never());
}

#[tokio::test]
async fn the_window_ends_when_it_was_said_to_or_in_the_millisecond_before() {
    let limiter = limiter("ends", 1, Duration::from_millis(40));
    for _ in 0..20 {
        let first = limiter.hit("a").await.unwrap();
        assert!(first.is_allowed());
        let end = first.reset_at().unwrap();
        loop {
            let decision = limiter.hit("a").await.unwrap();
            let at = decision.at().unwrap();
            if decision.is_allowed() {
                assert!(
                    at + Duration::from_millis(1) >= end,
                    "{first:?} {decision:?}"
                );
                break;
            }
            // Counted before the clock is read, so a denial may be read a little late.
            assert!(
                at < end + Duration::from_millis(20),
                "{first:?} {decision:?}"
            );
            tokio::time::sleep(Duration::from_micros(500)).await;
        }
        limiter.reset("a").await.unwrap();
    }
}

#[tokio::test]
async fn a_refund_counts_in_its_own_window_and_a_debt_is_kept() {
    let limiter = limiter("refund", 10, MINUTE);
    let receipt = limiter
        .reserve("a", 6)
        .await
        .unwrap()
        .into_receipt()
        .unwrap();
    limiter.settle(receipt, 2).await.unwrap();
    assert_eq!(limiter.peek("a").await.unwrap().remaining(), 8);
    let lives: i64 = client().pttl(name("refund", "a")).await.unwrap();
    assert!((55_000..60_000).contains(&lives), "{lives} ms");
    let receipt = limiter
        .reserve("a", 1)
        .await
        .unwrap()
        .into_receipt()
        .unwrap();
    limiter.settle(receipt, 100).await.unwrap();
    let denied = limiter.hit("a").await.unwrap();
    assert!(native(&denied) && !denied.is_allowed());
    assert_eq!(denied.remaining(), 0);
}

#[tokio::test]
async fn a_refund_after_the_window_is_no_free_hit() {
    let limiter = limiter("rolled", 2, Duration::from_millis(50));
    let receipt = limiter
        .reserve("a", 2)
        .await
        .unwrap()
        .into_receipt()
        .unwrap();
    tokio::time::sleep(Duration::from_millis(60)).await;
    assert!(limiter.hit("a").await.unwrap().is_allowed());
    limiter.settle(receipt, 0).await.unwrap();
    assert_eq!(limiter.peek("a").await.unwrap().remaining(), 1);
}

#[tokio::test]
async fn a_lowered_limit_keeps_the_usage_already_made() {
    let high = limiter("lowered", 10, MINUTE);
    assert!(high.hit_n("a", 9).await.unwrap().is_allowed());
    let low = limiter("lowered", 5, MINUTE);
    let denied = join_all((0..20).map(|_| low.hit("a"))).await;
    assert!(
        denied
            .iter()
            .all(|decision| !decision.as_ref().unwrap().is_allowed())
    );
    assert_eq!(high.peek("a").await.unwrap().remaining(), 1);
    assert!(high.hit("a").await.unwrap().is_allowed());
}

#[tokio::test]
async fn a_full_counter_that_lost_its_expiry_is_repaired_by_a_denied_hit() {
    let limiter = limiter("stuck", 2, Duration::from_millis(80));
    for _ in 0..2 {
        assert!(limiter.hit("a").await.unwrap().is_allowed());
    }
    let _: () = client().persist(name("stuck", "a")).await.unwrap();
    assert!(!limiter.hit("a").await.unwrap().is_allowed());
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert!(limiter.hit("a").await.unwrap().is_allowed());
}

#[tokio::test]
async fn a_peek_and_a_batch_see_a_counter_that_lost_its_expiry() {
    let limiter = limiter("stuck-batch", 5, MINUTE);
    let _: () = client().set(name("stuck-batch", "a"), "3").await.unwrap();
    assert_eq!(limiter.peek("a").await.unwrap().remaining(), 2);
    assert_eq!(
        client()
            .pttl::<_, i64>(name("stuck-batch", "a"))
            .await
            .unwrap(),
        -1
    );
    let policy = policy(5, MINUTE);
    let other = Policy::new("other", Algorithm::TokenBucket, Quota::per_minute(5)).unwrap();
    let spaces = [
        Space::new("stuck-batch", "", &policy),
        Space::new("stuck-batch", "", &other),
    ];
    let check = |index: usize, policy| Check {
        key: Key::new(&spaces[index], b"a").unwrap(),
        policy,
        op: Op::Hit(Cost::ONE),
    };
    let checks = [check(0, &policy), check(1, &other)];
    let store = RedisStore::new(client());
    assert!(
        store
            .apply(Batch::new(&checks).unwrap())
            .await
            .unwrap()
            .is_allowed()
    );
    assert!(
        client()
            .pttl::<_, i64>(name("stuck-batch", "a"))
            .await
            .unwrap()
            > 0
    );
    let hit = limiter.hit("a").await.unwrap();
    assert_eq!((native(&hit), hit.remaining()), (true, 0));
    assert!(limiter.reset("a").await.unwrap());
    assert!(!limiter.reset("a").await.unwrap());
}

#[tokio::test]
async fn a_counter_of_another_program_is_named_and_spoils_nobody_elses_hit() {
    let limiter = limiter("spoiled", 100, MINUTE);
    let _: () = client().lpush(name("spoiled", "list"), "x").await.unwrap();
    let _: () = client().set(name("spoiled", "text"), "ten").await.unwrap();
    let subjects = ["a", "list", "text", "list", "b", "text", "a"];
    for (subject, decision) in subjects
        .iter()
        .zip(join_all(subjects.map(|one| limiter.hit(one))).await)
    {
        let decision = decision.unwrap();
        if ["a", "b"].contains(subject) {
            assert!(decision.is_allowed() && native(&decision));
            continue;
        }
        let error = decision.error().unwrap();
        assert_eq!(error.kind(), ErrorKind::Corrupt);
        assert!(
            error.to_string().contains(&name("spoiled", subject)),
            "{error}"
        );
        assert_eq!(
            limiter.peek(subject).await.unwrap().error().unwrap().kind(),
            ErrorKind::Corrupt
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hits_counted_together_are_admitted_exactly_and_in_order() {
    for cost in [1, 3, 7] {
        let limiter = Arc::new(limiter(&format!("exact-{cost}"), 1_000, MINUTE));
        let tasks = (0..64).map(|task| {
            let limiter = limiter.clone();
            tokio::spawn(async move {
                let mut admitted = 0;
                for hit in 0..30 {
                    let cost = if cost == 7 {
                        1 + (task + hit) % 7
                    } else {
                        cost
                    };
                    let decision = limiter.hit_n("a", cost).await.unwrap();
                    assert!(native(&decision));
                    admitted += if decision.is_allowed() { cost } else { 0 };
                }
                admitted
            })
        });
        let admitted: u64 = join_all(tasks).await.into_iter().map(Result::unwrap).sum();
        assert_eq!(
            admitted,
            1_000 / cost * cost + if cost == 7 { 1_000 % 7 } else { 0 }
        );
    }
}

#[tokio::test]
async fn a_full_server_refuses_to_count_and_charges_nothing() {
    let full = RedisServer::start(RedisProgram::Redis8).unwrap();
    let limiter = Limiter::new(
        RedisStore::new(common::manager(&full.url())),
        policy(10, MINUTE),
    );
    let limiter = limiter.on_failure(FailureMode::Closed);
    assert!(limiter.hit("a").await.unwrap().is_allowed());
    full.command(&["CONFIG", "SET", "maxmemory", "1"]).unwrap();
    let decision = limiter.hit("a").await.unwrap();
    let error = decision.error().unwrap();
    assert_eq!(
        (error.kind(), error.may_have_charged()),
        (ErrorKind::Overloaded, false),
        "{error:?}"
    );
    full.command(&["CONFIG", "SET", "maxmemory", "0"]).unwrap();
    assert_eq!(limiter.hit("a").await.unwrap().remaining(), 8);
}

#[tokio::test]
async fn a_server_that_became_a_replica_counts_nothing_until_it_is_a_master_again() {
    let server = RedisServer::start(RedisProgram::Redis8).unwrap();
    let store = RedisStore::new(common::manager(&server.url()));
    let limiter = Limiter::new(store, policy(10, MINUTE)).on_failure(FailureMode::Closed);
    assert!(native(&limiter.hit("a").await.unwrap()));
    server.command(&["REPLICAOF", "127.0.0.1", "1"]).unwrap();
    for decision in join_all(["a", "a", "b"].map(|one| limiter.hit(one))).await {
        let decision = decision.unwrap();
        let error = decision.error().unwrap();
        assert_eq!(
            (error.kind(), error.may_have_charged()),
            (ErrorKind::Unavailable, false),
            "{error:?}"
        );
    }
    server.command(&["REPLICAOF", "NO", "ONE"]).unwrap();
    let hit = limiter.hit("a").await.unwrap();
    assert!(native(&hit));
    assert_eq!(hit.remaining(), 8);
}

#[tokio::test]
async fn a_user_who_may_not_ask_for_the_end_learns_that_the_hit_may_be_charged() {
    let server = RedisServer::start(RedisProgram::Redis8).unwrap();
    let without = common::COMMANDS.iter().copied();
    let without: Vec<_> = without.filter(|one| *one != "+pexpiretime").collect();
    common::allow(&server, "~*", &without);
    let store = RedisStore::new(common::manager(&common::limited_url(&server)));
    let limiter = Limiter::new(store, policy(10, MINUTE)).on_failure(FailureMode::Closed);
    let decision = limiter.hit("a").await.unwrap();
    let error = decision.error().unwrap();
    assert_eq!(
        (error.kind(), error.may_have_charged()),
        (ErrorKind::Refused, true),
        "{error:?}"
    );
}

#[tokio::test]
async fn who_wants_the_script_alone_gets_it() {
    let store = RedisStore::script_only(client());
    let limiter = Limiter::new(store, policy(10, MINUTE)).prefix("alone");
    assert_eq!(limiter.hit("a").await.unwrap().source(), Source::Store);
}
