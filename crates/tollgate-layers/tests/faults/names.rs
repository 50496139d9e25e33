//! Host names that do not resolve.

use std::thread::sleep;
use std::time::{Duration, Instant};

use tollgate_core::{ErrorKind, FailureMode};
use tollgate_redis::RedisStore;

use crate::backend::Backend;
use crate::load::limiter;
use crate::postgres::{self, Postgres};
use crate::redis;
use crate::run::every_promise_holds;
use crate::stack::{BOUND, exposed, usual};

/// Reserved never to exist (RFC 6761, section 6.4).
const NO_SUCH_HOST: &str = "no-such-host.invalid";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_name_that_is_gone_when_connections_are_made_anew_keeps_nobody_waiting() {
    let server = Postgres::start().await;
    let proxy = server.proxy();
    let pool = postgres::pool(proxy.port());
    let there = (*pool.connect_options()).clone().host("localhost");
    let gone = there.clone().host(NO_SUCH_HOST);
    pool.set_connect_options(there.clone());
    let stacks = [
        usual(postgres::on(pool.clone())),
        exposed(postgres::on(pool.clone())),
    ];
    let play = Postgres::scene("host name gone, connections reset").play(&stacks, move || {
        pool.set_connect_options(gone);
        proxy.reset_connections();
        sleep(Duration::from_secs(1));
        pool.set_connect_options(there);
        Ok(proxy)
    });
    let (outcomes, _proxy) = play.await;
    every_promise_holds(&outcomes, &server.bare()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_name_that_never_resolves_is_a_store_that_is_away() {
    let url = format!("redis://{NO_SUCH_HOST}:6379");
    let stack = exposed(RedisStore::new(redis::manager(&url)));
    for _ in 0..5 {
        let asked = Instant::now();
        let limiter = limiter(&stack.store, stack.name, FailureMode::Closed);
        let decision = limiter.hit("a").await.unwrap();
        assert!(asked.elapsed() < BOUND + Duration::from_secs(1));
        assert!(!decision.is_allowed() && decision.is_degraded());
        let error = decision.error().unwrap();
        let away = [ErrorKind::Unavailable, ErrorKind::Timeout];
        assert!(away.contains(&error.kind()), "{error}");
    }
}
