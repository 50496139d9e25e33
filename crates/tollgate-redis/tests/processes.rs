//! Four processes of 64 tasks each on the same keys: exactly the limit is admitted.
//!
//! The program runs itself again as each of the processes.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test that cannot go on fails where it stands, and its processes report by printing"
)]

mod common;

use std::process::{Command, Stdio};
use std::sync::Arc;

use futures::future::join_all;
use libtest_mimic::{Arguments, Trial};
use tollgate_core::{Algorithm, Limiter, Policy, Quota};
use tollgate_redis::{RedisStore, tollgate_core};
use tollgate_services::{RedisProgram, RedisServer};

const PROCESSES: u64 = 4;
const TASKS: u64 = 64;
/// Says to this program that it is one of the processes; its arguments stand in the variable.
const CHILD: &str = "TOLLGATE_TEST_CHILD";

fn main() {
    if let Ok(job) = std::env::var(CHILD) {
        return child(&job);
    }
    let mut trials = Vec::new();
    for program in [RedisProgram::System, RedisProgram::Redis8] {
        for algorithm in Algorithm::ALL {
            let name = |keys| format!("{} {algorithm} on {keys}", program.name());
            trials.push(Trial::test(name("one key"), move || {
                // 2560 hits.
                exactly(program, algorithm, 1, 1_000, 10);
                Ok(())
            }));
            trials.push(Trial::test(name("a thousand keys"), move || {
                // 16 hits on each key, by every process.
                exactly(program, algorithm, 1_000, 5, 250);
                Ok(())
            }));
        }
    }
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}

fn exactly(program: RedisProgram, algorithm: Algorithm, keys: u64, limit: u64, hits: u64) {
    let server = RedisServer::start(program).unwrap();
    let job = format!("{} {algorithm} {keys} {limit} {hits}", server.url());
    let start = || {
        Command::new(std::env::current_exe().unwrap())
            .env(CHILD, &job)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap()
    };
    let children: Vec<_> = (0..PROCESSES).map(|_| start()).collect();
    let mut admitted = 0;
    for child in children {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", output.status);
        admitted += String::from_utf8(output.stdout)
            .unwrap()
            .trim()
            .parse::<u64>()
            .unwrap();
    }
    assert_eq!(admitted, keys * limit);
}

/// One process: all its tasks hit, task by task over the keys in another order, and it prints how many were admitted.
fn child(job: &str) {
    let mut words = job.split(' ');
    let url = words.next().unwrap();
    let algorithm: Algorithm = words.next().unwrap().parse().unwrap();
    let mut number = || words.next().unwrap().parse::<u64>().unwrap();
    let (keys, limit, hits) = (number(), number(), number());
    let admitted = common::runtime().block_on(async {
        let policy = Policy::new(
            "p",
            algorithm,
            Quota::new(limit, Quota::MAX_PERIOD).unwrap(),
        )
        .unwrap();
        let limiter = Arc::new(Limiter::new(RedisStore::new(common::manager(url)), policy));
        let tasks = (0..TASKS).map(|task| {
            let limiter = limiter.clone();
            tokio::spawn(async move {
                let mut admitted = 0;
                for hit in 0..hits {
                    let subject = format!("subject {}", (task * hits + hit * 7) % keys);
                    let decision = limiter.hit(subject).await.unwrap();
                    assert!(!decision.is_degraded(), "{:?}", decision.error());
                    admitted += u64::from(decision.is_allowed());
                }
                admitted
            })
        });
        join_all(tasks)
            .await
            .into_iter()
            .map(Result::unwrap)
            .sum::<u64>()
    });
    println!("{admitted}");
}
