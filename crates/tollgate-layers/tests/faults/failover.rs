//! An address that leads to another server, which knows of nothing.

use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use tollgate_core::FailureMode;
use tollgate_layers::DenyCacheOptions;

use crate::backend::Backend;
use crate::load::{LIMIT, limiter};
use crate::redis::Redis;
use crate::run::Outcome;
use crate::stack::Stack;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failover_that_forgets_every_count_gives_each_subject_its_limit_once_more() {
    let (first, second) = (Redis::start().await, Redis::start().await);
    let proxy = first.proxy();
    let stacks = Redis::stacks(proxy.port());
    spend(&stacks).await;
    let elsewhere = (Ipv4Addr::LOCALHOST, second.port());
    let play = Redis::scene("failover to an empty server").play(&stacks, move || {
        proxy.redirect(elsewhere);
        proxy.reset_connections();
        Ok(proxy)
    });
    let (outcomes, _proxy) = play.await;
    outcomes.iter().for_each(Outcome::keeps_callers_going);
    spend(&stacks).await;
}

/// One subject asks for twice its limit, and gets it once at most.
async fn spend(stacks: &[Stack]) {
    for stack in stacks {
        let limiter = limiter(&stack.store, stack.name, FailureMode::Closed);
        let (started, mut admitted) = (Instant::now(), 0);
        // A denial by the first server may still be remembered.
        while admitted == 0 && started.elapsed() < DenyCacheOptions::MAX_AGE * 10 {
            for _ in 0..2 * LIMIT {
                admitted += u64::from(limiter.hit("somebody").await.unwrap().is_allowed());
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        assert!((1..=LIMIT).contains(&admitted), "{admitted}");
    }
}
