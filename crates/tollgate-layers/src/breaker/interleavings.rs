//! The gate under a scheduler that tries other interleavings on every run.

use std::sync::Arc;
use std::time::Duration;

use shuttle::{check_random, thread};
use tollgate_core::{Error, ErrorKind};

use super::gate::{Change, Entry, Evidence, Gate, Pass};
use super::options::BreakerOptions;
use super::word::BreakerState;

const RUNS: usize = 2_000;
/// When a probe is due in any case, and before the probe itself is given up on.
const LATER: u64 = 2_000;

fn gate(failures: u32) -> Gate {
    let (first, longest) = (Duration::from_millis(1), Duration::from_secs(1));
    let options = BreakerOptions::new().failures(failures);
    Gate::new(options.backoff(first, longest))
}

fn fail(gate: &Gate, pass: Pass) -> Option<Change> {
    let error = Error::new(ErrorKind::Unavailable, "gone");
    gate.conclude(pass, &Evidence::Down(&error), || 0)
}

fn open() -> Gate {
    let gate = gate(1);
    let pass = gate.pass_if_closed().unwrap();
    assert!(matches!(fail(&gate, pass), Some(Change::Opened(_))));
    gate
}

/// What `act` answers on three threads.
fn three_threads<T: Send + 'static>(
    gate: &Arc<Gate>,
    act: impl Fn(usize, &Gate) -> T + Send + Sync + 'static,
) -> Vec<T> {
    let act = Arc::new(act);
    let threads: Vec<_> = (0..3)
        .map(|number| {
            let (gate, act) = (Arc::clone(gate), Arc::clone(&act));
            thread::spawn(move || act(number, &gate))
        })
        .collect();
    let ends = threads.into_iter().map(thread::JoinHandle::join);
    ends.map(|end| end.unwrap()).collect()
}

#[test]
fn of_threads_that_fail_at_once_one_opens() {
    check_random(
        || {
            let gate = Arc::new(gate(3));
            let pass = gate.pass_if_closed().unwrap();
            let changes = three_threads(&gate, move |_, gate| fail(gate, pass));
            assert_eq!(changes.iter().flatten().count(), 1);
            assert_eq!(gate.state(), BreakerState::Open);
        },
        RUNS,
    );
}

#[test]
fn of_threads_that_come_when_a_probe_is_due_one_is_the_probe() {
    check_random(
        || {
            let entries = three_threads(&Arc::new(open()), |_, gate| gate.enter(LATER));
            let is_probe = |(entry, _): &&(Entry, _)| matches!(entry, Entry::Through(_));
            assert_eq!(entries.iter().filter(is_probe).count(), 1);
            let changes: Vec<_> = entries.iter().filter_map(|(_, change)| *change).collect();
            assert_eq!(changes, [Change::Probing]);
        },
        RUNS,
    );
}

#[test]
fn threads_that_come_while_a_probe_is_answered_do_not_probe_again() {
    check_random(
        || {
            let gate = Arc::new(open());
            let (Entry::Through(probe), _) = gate.enter(LATER) else {
                panic!("the probe was due");
            };
            let changes = three_threads(&gate, move |number, gate| {
                if number == 0 {
                    return gate.conclude(probe, &Evidence::Answers, || LATER);
                }
                let (entry, change) = gate.enter(LATER);
                assert!(!matches!(entry, Entry::Through(pass) if pass.is_probe));
                change
            });
            assert_eq!(changes, [Some(Change::Closed(0)), None, None]);
            assert_eq!(gate.state(), BreakerState::Closed);
        },
        RUNS,
    );
}

#[test]
fn a_dropped_probe_makes_way_for_exactly_one_other() {
    check_random(
        || {
            let gate = Arc::new(open());
            let (Entry::Through(probe), _) = gate.enter(LATER) else {
                panic!("the probe was due");
            };
            assert_eq!(
                gate.conclude(probe, &Evidence::Nothing, || LATER),
                Some(Change::ProbeLost)
            );
            let entries = three_threads(&gate, |_, gate| gate.enter(LATER).1);
            assert_eq!(entries.iter().flatten().count(), 1);
        },
        RUNS,
    );
}

#[test]
fn an_answer_and_a_failure_that_meet_leave_no_more_than_the_failure_counted() {
    check_random(
        || {
            let gate = Arc::new(gate(3));
            let pass = gate.pass_if_closed().unwrap();
            assert_eq!(fail(&gate, pass), None);
            let changes = three_threads(&gate, move |number, gate| match number {
                0 => gate.conclude(pass, &Evidence::Answers, || 0),
                1 => fail(gate, pass),
                _ => None,
            });
            assert_eq!(changes, [None; 3]);
            assert_eq!(fail(&gate, pass), None, "at most two in a row by now");
        },
        RUNS,
    );
}

#[test]
fn failures_are_counted_from_the_last_answer() {
    check_random(
        || {
            let gate = gate(3);
            let pass = gate.pass_if_closed().unwrap();
            let answer = || gate.conclude(pass, &Evidence::Answers, || 0);
            let fail = || fail(&gate, pass);
            assert_eq!([fail(), fail(), answer(), fail(), fail()], [None; 5]);
            assert!(matches!(fail(), Some(Change::Opened(_))));
        },
        1,
    );
}
