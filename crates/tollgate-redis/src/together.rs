//! Batches that travel in one call are answered as if each had come alone.

use std::collections::HashMap;

use proptest::prelude::*;
use redis::aio::MultiplexedConnection;
use tokio::runtime::Runtime;
use tollgate_core::{
    Algorithm, Batch, Check, Cost, ErrorKind, Key, Op, Policy, Quota, Result, Space, State,
    Timestamp, Verdicts,
};
use tollgate_services::{RedisProgram, RedisServer};

use crate::request::{Question, Request};
use crate::script::{How, Script};
use crate::{key, reply::Reply};

/// A server, and a connection to ask it.
struct Bed {
    runtime: Runtime,
    connection: MultiplexedConnection,
    script: Script,
    _server: RedisServer,
}

impl Bed {
    fn new() -> Self {
        let server = RedisServer::start(RedisProgram::System).unwrap();
        let runtime = Runtime::new().unwrap();
        let client = redis::Client::open(server.url()).unwrap();
        let connection = runtime
            .block_on(client.get_multiplexed_async_connection())
            .unwrap();
        Self {
            runtime,
            connection,
            script: Script::new(),
            _server: server,
        }
    }

    fn command<T: redis::FromRedisValue>(&self, command: &redis::Cmd) -> T {
        let mut connection = self.connection.clone();
        self.runtime
            .block_on(command.query_async(&mut connection))
            .unwrap()
    }

    /// Asks all batches in one call.
    fn ask(&self, at: Timestamp, batches: &[Batch<'_>]) -> Vec<Result<Verdicts>> {
        let questions = batches.iter().map(|batch| Question::of_batch(batch, false));
        let questions: Vec<_> = questions.collect();
        let mut request = Request::new(Some(at));
        for questions in &questions {
            request.push(questions);
        }
        let value = self.command(&request.command(&self.script, How::Text));
        let mut reply = Reply::new(value, request.times()).unwrap();
        questions
            .iter()
            .map(|questions| reply.next(questions))
            .collect()
    }
}

fn at(micros: u64) -> Timestamp {
    Timestamp::from_micros(micros).unwrap()
}

/// A policy of each algorithm, with limits that a few hits use up.
fn policies() -> Vec<Policy> {
    let quota: Quota = "6/10s".parse().unwrap();
    let policy = |(name, algorithm)| Policy::new(name, algorithm, quota).unwrap();
    // Under names of their own, since the three kinds of buckets are one family.
    let mut policies: Vec<Policy> = ["a", "b", "c", "d", "e", "f"]
        .into_iter()
        .zip(Algorithm::ALL)
        .map(policy)
        .collect();
    let aligned = Policy::new("aligned", Algorithm::FixedWindow, quota).unwrap();
    policies.push(aligned.aligned(60).unwrap());
    policies
}

/// Which policy, which subject, and how much.
type Asked = (usize, u8, Op);

fn op() -> impl Strategy<Value = Op> {
    let hit = |cost| Op::Hit(Cost::new(cost).unwrap());
    prop_oneof![
        10 => Just(hit(1)),
        2 => (1u64..8).prop_map(hit),
        1 => (1u64..8).prop_map(|cost| Op::Peek(Cost::new(cost).unwrap())),
    ]
}

/// Mostly single hits under one policy, on subjects of which some come again, now and then many times in a row.
fn batches() -> impl Strategy<Value = Vec<Vec<Asked>>> {
    let policy = || prop_oneof![3 => Just(0usize), 4 => 0usize..7];
    let single = (policy(), 0u8..40, op()).prop_map(|asked| vec![asked]);
    let several = prop::collection::vec((policy(), 0u8..6, op()), 2..4);
    let batch = prop_oneof![12 => single, 1 => several].prop_map(|mut batch| {
        batch.sort_by_key(|(policy, subject, _)| (*policy, *subject));
        batch.dedup_by_key(|(policy, subject, _)| (*policy, *subject));
        batch
    });
    let times = prop_oneof![5 => Just(1usize), 1 => 2usize..12];
    let repeated = (batch, times).prop_map(|(batch, times)| vec![batch; times]);
    prop::collection::vec(repeated, 1..60).prop_map(|batches| batches.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn batches_in_one_call_are_judged_one_after_the_other(
        calls in prop::collection::vec((-500_000i64..4_000_000, batches()), 1..8),
    ) {
        thread_local!(static BED: Bed = Bed::new());
        BED.with(|bed| {
            let () = bed.command(&redis::cmd("FLUSHALL"));
            let policies = policies();
            let spaces: Vec<Space> = policies.iter().map(|policy| Space::new("t", "s", policy)).collect();
            let mut states: HashMap<(usize, u8), State> = HashMap::new();
            let mut now = 1_700_000_000_123_457u64;
            for (later, batches) in &calls {
                now = now.saturating_add_signed(*later);
                let subjects: Vec<[u8; 1]> = (0u8..=u8::MAX).map(|subject| [subject]).collect();
                let checks: Vec<Vec<Check<'_>>> = batches.iter().map(|batch| {
                    batch.iter().map(|(policy, subject, op)| Check {
                        key: Key::new(&spaces[*policy], &subjects[usize::from(*subject)]).unwrap(),
                        policy: &policies[*policy],
                        op: *op,
                    }).collect()
                }).collect();
                let asked: Vec<Batch<'_>> =
                    checks.iter().map(|checks| Batch::new(checks).unwrap().at(Some(at(now)))).collect();
                let found = bed.ask(at(now), &asked);
                for ((batch, asked), found) in batches.iter().zip(&asked).zip(found) {
                    let place = |(policy, subject, _): &Asked| (*policy, *subject);
                    let mut before: Vec<_> =
                        batch.iter().map(|one| states.get(&place(one)).cloned()).collect();
                    let expected = asked.step(&mut before, at(now));
                    prop_assert_eq!(found.unwrap(), expected, "at {} for {:?}", now, batch);
                    for (one, state) in batch.iter().zip(before) {
                        match state {
                            Some(state) => states.insert(place(one), state),
                            None => states.remove(&place(one)),
                        };
                    }
                }
            }
            Ok(())
        })?;
    }
}

#[test]
fn an_empty_string_is_corrupt_however_the_hit_on_it_travels() {
    let bed = Bed::new();
    for limit in ["5/minute", "0/minute"] {
        let policy = Policy::new("p", Algorithm::Gcra, limit.parse::<Quota>().unwrap()).unwrap();
        let space = Space::new("t", "s", &policy);
        let hit = |subject: &'static [u8]| Check {
            key: Key::new(&space, subject).unwrap(),
            policy: &policy,
            op: Op::Hit(Cost::ONE),
        };
        let (empty, other) = ([hit(b"empty")], [hit(b"other")]);
        let name = key::name(&empty[0].key);
        let () = bed.command(redis::cmd("SET").arg(&name).arg(""));
        let batch = |checks| Batch::new(checks).unwrap();
        let calls = [
            vec![batch(&empty)],
            vec![batch(&empty), batch(&other)],
            vec![batch(&empty), batch(&empty)],
        ];
        for call in &calls {
            let answers = bed.ask(at(1_700_000_000_000_000), call);
            let error = answers[0].as_ref().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corrupt, "{limit}: {error}");
            assert!(error.to_string().contains("a string that"), "{error}");
        }
        let kept: String = bed.command(redis::cmd("GET").arg(&name));
        assert_eq!(kept, "", "{limit}");
    }
}

#[test]
fn a_key_that_cannot_be_read_is_no_trouble_for_its_neighbours() {
    let bed = Bed::new();
    for limit in ["5/minute", "0/minute"] {
        let () = bed.command(&redis::cmd("FLUSHALL"));
        let policy = Policy::new("p", Algorithm::Gcra, limit.parse::<Quota>().unwrap()).unwrap();
        let space = Space::new("t", "s", &policy);
        let checks = ["fine", "list", "junk", "fine too"].map(|subject| Check {
            key: Key::new(&space, subject.as_bytes()).unwrap(),
            policy: &policy,
            op: Op::Hit(Cost::ONE),
        });
        let name = |index: usize| key::name(&checks[index].key);
        let _: u64 = bed.command(redis::cmd("RPUSH").arg(name(1)).arg("element"));
        let () = bed.command(redis::cmd("SET").arg(name(2)).arg("junk"));
        let batches: Vec<Batch<'_>> = checks.iter().map(Batch::of_one).collect();
        let answers = bed.ask(at(1_700_000_000_000_000), &batches);
        let limited = limit.starts_with('0');
        for index in [0, 3] {
            let verdicts = answers[index].as_ref().unwrap();
            assert_eq!(verdicts.is_allowed(), !limited, "{limit}");
        }
        for index in [1, 2] {
            let error = answers[index].as_ref().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corrupt, "{limit}: {error}");
        }
        let kept: String = bed.command(redis::cmd("TYPE").arg(name(1)));
        assert_eq!(kept, "list");
    }
}
