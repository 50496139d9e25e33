//! Pools that others hold every connection of.

use std::time::Duration;

use futures::future::join_all;
use tokio::runtime::Handle;
use tollgate_postgres::sqlx::postgres::PgPoolOptions;
use tollgate_redis::RedisStore;
use tollgate_redis::deadpool_redis::{Config, Runtime};

use crate::backend::Backend;
use crate::postgres::{self, Postgres};
use crate::redis::Redis;
use crate::run::every_promise_holds;
use crate::stack::{exposed, usual};

const CONNECTIONS: u8 = 4;
const HELD_FOR: Duration = Duration::from_secs(1);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_postgres_pool_that_others_hold_keeps_nobody_waiting() {
    let server = Postgres::start().await;
    let pool = PgPoolOptions::new()
        .max_connections(CONNECTIONS.into())
        .connect_lazy(&postgres::url(server.port()))
        .unwrap();
    let stacks = [
        usual(postgres::on(pool.clone())),
        exposed(postgres::on(pool.clone())),
    ];
    let play = Postgres::scene("pool held by others").play(&stacks, move || {
        Handle::current().block_on(async {
            let held = join_all((0..CONNECTIONS).map(|_| pool.acquire())).await;
            assert!(held.iter().all(Result::is_ok));
            tokio::time::sleep(HELD_FOR).await;
        });
        Ok(())
    });
    let (outcomes, ()) = play.await;
    every_promise_holds(&outcomes, &server.bare()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_redis_pool_that_others_hold_keeps_nobody_waiting() {
    let server = Redis::start().await;
    let pool = Config::from_url(format!("redis://127.0.0.1:{}", server.port()))
        .builder()
        .unwrap()
        .max_size(CONNECTIONS.into())
        .runtime(Runtime::Tokio1)
        .build()
        .unwrap();
    let stacks = [
        usual(RedisStore::new(pool.clone())),
        exposed(RedisStore::new(pool.clone())),
    ];
    let play = Redis::scene("pool held by others").play(&stacks, move || {
        Handle::current().block_on(async {
            let held = join_all((0..CONNECTIONS).map(|_| pool.get())).await;
            assert!(held.iter().all(Result::is_ok));
            tokio::time::sleep(HELD_FOR).await;
        });
        Ok(())
    });
    let (outcomes, ()) = play.await;
    every_promise_holds(&outcomes, &server.bare()).await;
}
