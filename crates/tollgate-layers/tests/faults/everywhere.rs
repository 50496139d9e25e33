//! The faults that can befall every store.

use std::num::NonZeroU64;
use std::thread::sleep;
use std::time::Duration;

use tollgate_faults::{Fault, Proxy};

use crate::backend::Backend;
use crate::run::{Outcome, every_promise_holds};

/// As long as most faults last.
const A_WHILE: Duration = Duration::from_secs(1);

/// Makes a test of each of these for the backend.
macro_rules! runs {
    ($module:ident, $backend:ty, $($run:ident),* $(,)?) => {
        mod $module {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $run() {
                    super::$run::<$backend>().await;
                }
            )*
        }
    };
}

macro_rules! for_every_backend {
    ($($run:ident),* $(,)?) => {
        runs!(redis, crate::redis::Redis, $($run),*);
        runs!(postgres, crate::postgres::Postgres, $($run),*);
    };
}

for_every_backend![
    a_server_that_is_killed_comes_back_with_every_charge,
    a_server_that_hangs_for_ten_seconds_keeps_nobody_waiting,
    connections_that_are_reset_lose_no_charge,
    half_a_second_of_latency_keeps_nobody_waiting,
    replies_that_are_cut_off_admit_nobody,
    replies_that_are_garbled_admit_nobody,
    replies_that_lie_are_forgotten_with_their_connection,
    a_port_that_nobody_listens_on_admits_nobody,
    connections_that_fall_silent_keep_nobody_waiting,
];

async fn a_server_that_is_killed_comes_back_with_every_charge<B: Backend>() {
    let mut server = B::start().await;
    let stacks = B::stacks(server.port());
    let play = B::scene("kill -9, restart a second later").play(&stacks, move || {
        server.kill()?;
        sleep(A_WHILE);
        server.restart()?;
        Ok(server)
    });
    let (outcomes, server) = play.await;
    every_promise_holds(&outcomes, &server.bare()).await;
}

async fn a_server_that_hangs_for_ten_seconds_keeps_nobody_waiting<B: Backend>() {
    let server = B::start().await;
    let stacks = B::stacks(server.port());
    let play = B::scene("SIGSTOP for 10 s").play(&stacks, move || {
        server.pause()?;
        sleep(Duration::from_secs(10));
        server.resume()?;
        Ok(server)
    });
    let (outcomes, server) = play.await;
    every_promise_holds(&outcomes, &server.bare()).await;
}

async fn connections_that_are_reset_lose_no_charge<B: Backend>() {
    between::<B>("connections reset every 50 ms", |proxy| {
        for _ in 0..20 {
            proxy.reset_connections();
            sleep(A_WHILE / 20);
        }
    })
    .await;
}

async fn half_a_second_of_latency_keeps_nobody_waiting<B: Backend>() {
    let latency = Fault::Latency {
        to_server: Duration::from_millis(250),
        to_client: Duration::from_millis(250),
    };
    between::<B>("500 ms of latency", for_a_while(latency)).await;
}

async fn replies_that_are_cut_off_admit_nobody<B: Backend>() {
    between::<B>("replies cut off after 7 bytes", |proxy| {
        for _ in 0..10 {
            proxy.set(Fault::Truncate { after: 7 }).unwrap();
            sleep(A_WHILE / 10);
        }
        proxy.heal().unwrap();
    })
    .await;
}

async fn replies_that_are_garbled_admit_nobody<B: Backend>() {
    let garble = Fault::Garble {
        every: NonZeroU64::new(3).unwrap(),
        mask: 0x80,
    };
    between::<B>("replies garbled", for_a_while(garble)).await;
}

/// One bit here and there makes another legal reply of some, and leaves others waiting for more: a caller may be told
/// what was not so, but not once the lies are over.
async fn replies_that_lie_are_forgotten_with_their_connection<B: Backend>() {
    let garble = Fault::Garble {
        every: NonZeroU64::new(61).unwrap(),
        mask: 0x01,
    };
    let server = B::start().await;
    let proxy = server.proxy();
    let stacks = B::stacks(proxy.port());
    let play = B::scene("single bits of replies flipped").play(&stacks, move || {
        for_a_while(garble)(&proxy);
        Ok(proxy)
    });
    let (outcomes, _proxy) = play.await;
    outcomes.iter().for_each(Outcome::keeps_callers_going);
}

async fn a_port_that_nobody_listens_on_admits_nobody<B: Backend>() {
    between::<B>("connections reset, new ones refused", |proxy| {
        proxy.set(Fault::Refuse).unwrap();
        proxy.reset_connections();
        sleep(A_WHILE);
        proxy.heal().unwrap();
    })
    .await;
}

async fn connections_that_fall_silent_keep_nobody_waiting<B: Backend>() {
    between::<B>("connections fall silent", for_a_while(Fault::Silence)).await;
}

/// A fault of the connections to a server that is well.
async fn between<B: Backend>(name: &'static str, fault: impl FnOnce(&Proxy) + Send + 'static) {
    let server = B::start().await;
    let proxy = server.proxy();
    let stacks = B::stacks(proxy.port());
    let play = B::scene(name).play(&stacks, move || {
        fault(&proxy);
        Ok(proxy)
    });
    let (outcomes, _proxy) = play.await;
    every_promise_holds(&outcomes, &server.bare()).await;
}

fn for_a_while(fault: Fault) -> impl FnOnce(&Proxy) + Send + 'static {
    move |proxy| {
        proxy.set(fault).unwrap();
        sleep(A_WHILE);
        proxy.heal().unwrap();
    }
}
