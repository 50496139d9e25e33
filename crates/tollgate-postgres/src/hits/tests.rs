//! Hits that travel together are answered as core answers them one after the other.

use std::cell::Cell;
use std::collections::HashMap;

use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use sqlx::postgres::PgPoolOptions;
use tokio::runtime::Runtime;
use tollgate_core::{
    Algorithm, Batch, Check, Cost, Key, Op, Policy, Quota, Space, State, Timestamp,
};
use tollgate_services::PostgresServer;

use super::Hits;
use crate::PostgresStore;
use crate::question::Question;

fn at(micros: u64) -> Timestamp {
    Timestamp::from_micros(micros).unwrap()
}

fn bucket(quota: &str) -> Policy {
    Policy::new("p", Algorithm::TokenBucket, quota.parse::<Quota>().unwrap()).unwrap()
}

/// One name and family: the units of their levels differ, or their limits do.
fn policies() -> [Policy; 4] {
    ["5/10s", "7/10s burst 3", "2/10s", "0/s"].map(bucket)
}

/// Whom it hits, under which policy, for how much, and how often.
type Hit = (u8, usize, u64, usize);
/// What comes at one instant, and how much later that is.
type Call = (i64, Vec<Hit>);

fn calls() -> impl Strategy<Value = Vec<Call>> {
    let later = prop_oneof![4 => 0i64..3_000_000, 1 => -2_000_000i64..0];
    let policy = prop_oneof![9 => Just(0usize), 1 => 0usize..4];
    let cost = prop_oneof![9 => Just(1u64), 1 => 1u64..9, 1 => Just(u64::MAX)];
    let times = prop_oneof![6 => Just(1usize), 1 => 2usize..9];
    let hits = prop::collection::vec((0u8..40, policy, cost, times), 1..40);
    prop::collection::vec((later, hits), 1..12)
}

/// Plays `calls`. Returns how many of them were judged as nothing but hits.
async fn play(store: &PostgresStore, scope: &str, calls: Vec<Call>) -> Result<u32, TestCaseError> {
    let policies = policies();
    let space = Space::new("t", scope, &policies[0]);
    let mut states: HashMap<u8, State> = HashMap::new();
    let mut now = 1_700_000_000_123_457u64;
    let mut by_hits = 0;
    for (later, mut hits) in calls {
        now = now.saturating_add_signed(later);
        hits.sort_by_key(|(subject, ..)| *subject);
        let subjects: Vec<[u8; 1]> = hits.iter().map(|hit| [hit.0]).collect();
        let mut checks: Vec<Check<'_>> = Vec::new();
        for ((_, policy, cost, times), subject) in hits.iter().zip(&subjects) {
            let check = Check {
                key: Key::new(&space, subject).unwrap(),
                policy: &policies[*policy],
                op: Op::Hit(Cost::new(*cost).unwrap()),
            };
            checks.extend(std::iter::repeat_n(check, *times));
        }
        let batches: Vec<Batch<'_>> = checks.iter().map(Batch::of_one).collect();
        let questions: Vec<Question> = batches.iter().map(Question::new).collect();
        let questions: Vec<&Question> = questions.iter().collect();
        by_hits += u32::from(Hits::of(&questions).is_some());
        let kept = &mut None;
        let flight = store.pilot.fly(&questions, Some(at(now)), kept);
        let found = flight.await.unwrap();
        prop_assert_eq!(found.len(), batches.len());
        for ((batch, check), found) in batches.iter().zip(&checks).zip(found) {
            let subject = check.key.subject()[0];
            let mut state = [states.get(&subject).cloned()];
            let expected = batch.step(&mut state, at(now));
            prop_assert_eq!(found, expected, "at {} for {:?}", now, check);
            match state {
                [Some(state)] => states.insert(subject, state),
                [None] => states.remove(&subject),
            };
        }
    }
    Ok(by_hits)
}

#[test]
fn hits_in_one_call_are_judged_one_after_the_other() {
    let server = PostgresServer::start().unwrap();
    let runtime = Runtime::new().unwrap();
    let store = runtime.block_on(async {
        let pool = PgPoolOptions::new().connect(&server.url()).await.unwrap();
        let store = PostgresStore::new(pool);
        store.ensure_schema().await.unwrap();
        store
    });
    let (runs, by_hits) = (Cell::new(0), Cell::new(0));
    let config = ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(80)
    };
    TestRunner::new(config)
        .run(&calls(), |calls| {
            runs.set(runs.get() + 1);
            let scope = runs.get().to_string();
            by_hits.set(by_hits.get() + runtime.block_on(play(&store, &scope, calls))?);
            Ok(())
        })
        .unwrap();
    assert!(by_hits.get() > 100, "only {} calls", by_hits.get());
}
