//! Four processes of 64 tasks each on the same keys: exactly the limit is admitted, and nobody ever deadlocks.
//!
//! The program runs itself again as each of the processes.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test that cannot go on fails where it stands, and its processes report by printing"
)]

mod support;

use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use libtest_mimic::{Arguments, Trial};
use tollgate_core::{Algorithm, Policy, Quota};
use tollgate_postgres::sqlx::postgres::PgPoolOptions;
use tollgate_postgres::{PostgresStore, tollgate_core};

const PROCESSES: u64 = 4;
const TASKS: u64 = 64;
/// Says to this program that it is one of the processes; its job stands in the variable.
const CHILD: &str = "TOLLGATE_TEST_CHILD";

/// What every process does: each task asks `hits` times for one of `groups`, all keys of a group in one batch.
#[derive(Clone, Copy, Debug)]
struct Job {
    algorithm: Algorithm,
    groups: u64,
    /// The keys of a group. Every other task names them from the last to the first.
    width: u64,
    limit: u64,
    hits: u64,
}

fn main() {
    if let Ok(job) = std::env::var(CHILD) {
        return child(&job);
    }
    let server = support::server();
    let pool = || support::pool(&server, 1);
    runtime().block_on(async { PostgresStore::new(pool()).ensure_schema().await.unwrap() });
    let mut trials = Vec::new();
    for algorithm in Algorithm::ALL {
        let job = |groups, width, limit, hits| Job {
            algorithm,
            groups,
            width,
            limit,
            hits,
        };
        let jobs = [
            ("one key", job(1, 1, 1_000, 10)),
            ("a thousand keys", job(1_000, 1, 5, 60)),
            ("batches in opposite orders", job(5, 3, 100, 5)),
        ];
        for (name, job) in jobs {
            let url = server.url();
            trials.push(Trial::test(format!("{algorithm}, {name}"), move || {
                exactly(&url, job);
                Ok(())
            }));
        }
    }
    let conclusion = libtest_mimic::run(&Arguments::from_args(), trials);
    let log = server.log().unwrap();
    assert!(!log.contains("deadlock"), "{log}");
    drop(server);
    conclusion.exit();
}

fn exactly(url: &str, job: Job) {
    let Job {
        algorithm,
        groups,
        width,
        limit,
        hits,
    } = job;
    let words = format!("{url} {algorithm} {groups} {width} {limit} {hits}");
    let start = || {
        Command::new(std::env::current_exe().unwrap())
            .env(CHILD, &words)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap()
    };
    let children: Vec<_> = (0..PROCESSES).map(|_| start()).collect();
    let mut admitted = 0;
    for child in children {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", output.status);
        let printed = String::from_utf8(output.stdout).unwrap();
        admitted += printed.trim().parse::<u64>().unwrap();
    }
    assert_eq!(admitted, groups * limit);
}

/// One process. It prints how many of its batches were admitted.
fn child(words: &str) {
    let mut words = words.split(' ');
    let url = words.next().unwrap();
    let algorithm = words.next().unwrap().parse().unwrap();
    let mut number = || words.next().unwrap().parse::<u64>().unwrap();
    let job = Job {
        algorithm,
        groups: number(),
        width: number(),
        limit: number(),
        hits: number(),
    };
    let admitted = runtime().block_on(async {
        // Nobody is to go away early, however busy the machine.
        let patient = Duration::from_secs(120);
        let pool = PgPoolOptions::new()
            .max_connections(8)
            .acquire_timeout(patient);
        let builder = PostgresStore::builder(pool.connect_lazy(url).unwrap());
        let builder = builder.lock_timeout(patient).statement_timeout(patient);
        let store = Arc::new(builder.build().unwrap());
        let tasks = (0..TASKS).map(|task| tokio::spawn(hits_of(task, job, Arc::clone(&store))));
        let admitted = join_all(tasks).await;
        admitted.into_iter().map(Result::unwrap).sum::<u64>()
    });
    println!("{admitted}");
}

async fn hits_of(task: u64, job: Job, store: Arc<PostgresStore>) -> u64 {
    let quota = Quota::new(job.limit, Quota::MAX_PERIOD).unwrap();
    let policy = Policy::new("p", job.algorithm, quota).unwrap();
    let scope = format!("{}, {} groups of {}", job.algorithm, job.groups, job.width);
    let mut admitted = 0;
    for hit in 0..job.hits {
        // The tasks together come to every group equally often.
        let group = (task * job.hits + hit) * 7 % job.groups;
        let mut names: Vec<String> = (0..job.width).map(|key| format!("{group}/{key}")).collect();
        if task % 2 == 1 {
            names.reverse();
        }
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let verdicts = support::hit(&store, &policy, &scope, &names).await.unwrap();
        let allowed = verdicts.is_allowed();
        assert!(
            verdicts
                .as_slice()
                .iter()
                .all(|one| one.is_allowed() == allowed)
        );
        admitted += u64::from(allowed);
    }
    admitted
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Runtime::new().unwrap()
}
