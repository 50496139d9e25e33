//! Random outages of several processes in virtual time: the bounds that the documentation of `Fallback` promises.

use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use tollgate_core::{Algorithm, Clock, ManualClock, Policy, Quota, Source};
use tollgate_layers::Share;

use crate::stores::{Counter, Health, Standing, Switched, memory, replica};

const SECOND: u64 = 1_000_000;
const BUCKETS: [Algorithm; 3] = [
    Algorithm::TokenBucket,
    Algorithm::LeakyBucket,
    Algorithm::Gcra,
];

#[derive(Clone, Debug)]
enum Step {
    Wait(u64),
    Hit {
        replica: usize,
        units: u64,
    },
    /// Cuts or mends the line of one process.
    Line {
        replica: usize,
        health: Health,
    },
    /// Cuts or mends all lines at once.
    All(Health),
}

fn steps(lines: bool) -> impl Strategy<Value = Vec<Step>> {
    let health = select(vec![Health::Up, Health::Up, Health::Away]);
    let hit = (0..3_usize, select(vec![1, 1, 1, 2, 3]));
    let line = (0..3_usize, health.clone());
    vec(
        prop_oneof![
            6 => (1..=SECOND / 3).prop_map(Step::Wait),
            1 => (1..=3 * SECOND).prop_map(Step::Wait),
            24 => hit.prop_map(|(replica, units)| Step::Hit { replica, units }),
            if lines { 2 } else { 0 } => line.prop_map(|(replica, health)| Step::Line { replica, health }),
            1 => health.prop_map(Step::All),
        ],
        1..150,
    )
}

/// An admitted hit.
#[derive(Clone, Copy, Debug)]
struct Admitted {
    at: u64,
    units: u64,
    /// The process whose stand-in admitted it; `None` for the store.
    by: Option<usize>,
}

/// The quarters of the limit, 12 units per second, that each of three processes has.
const QUARTERS: [u32; 3] = [2, 1, 1];

/// Processes that share a store, and what they have admitted.
#[derive(Debug)]
struct World {
    clock: ManualClock,
    counter: Counter,
    lines: Vec<Switched>,
    replicas: Vec<Standing>,
    admitted: Vec<Admitted>,
    /// How many hits had been admitted when the last outage began.
    before_outage: usize,
}

impl World {
    fn new(policy: Policy, quarters: &[u32]) -> Self {
        let clock = ManualClock::default();
        let store = memory(&clock);
        let line = |_: &u32| Switched::over(store.clone());
        let lines: Vec<Switched> = quarters.iter().map(line).collect();
        let replicas = lines.iter().zip(quarters);
        Self {
            replicas: replicas
                .map(|(line, quarters)| replica(line, Share::of(*quarters, 4).unwrap(), &clock))
                .collect(),
            counter: Counter::of(policy),
            before_outage: 0,
            clock,
            lines,
            admitted: Vec::new(),
        }
    }

    /// Takes the step; the hit that was admitted by it, if one was.
    fn play(&mut self, step: &Step) -> Option<(usize, Admitted)> {
        match *step {
            Step::Wait(micros) => self.clock.advance(Duration::from_micros(micros)),
            Step::Line { replica, health } => self.lines[replica].set(health),
            Step::All(health) => {
                if health == Health::Away {
                    self.before_outage = self.admitted.len();
                }
                self.lines.iter().for_each(|line| line.set(health));
            }
            Step::Hit { replica, units } => {
                let answer = self.counter.hit(&self.replicas[replica], units);
                if !answer.is_allowed() {
                    return None;
                }
                let degraded = answer.source() == Source::Fallback;
                let admitted = Admitted {
                    at: now(&self.clock),
                    units,
                    by: degraded.then_some(replica),
                };
                self.admitted.push(admitted);
                return Some((replica, admitted));
            }
        }
        None
    }

    /// When hits were admitted, each once.
    fn instants(&self) -> Vec<u64> {
        let mut instants: Vec<u64> = self.admitted.iter().map(|hit| hit.at).collect();
        instants.dedup();
        instants
    }

    /// Units admitted from `since` on by those that `counts` is true of.
    fn units(&self, since: u64, counts: impl Fn(Option<usize>) -> bool) -> u64 {
        let admitted = self.admitted.iter();
        admitted
            .filter(|hit| hit.at >= since && counts(hit.by))
            .map(|hit| hit.units)
            .sum()
    }

    /// What the store admitted from `since` on, and those stand-ins that owe nothing any more.
    fn known_to_the_store(&self, since: u64) -> u64 {
        self.units(since, |by| {
            by.is_none_or(|replica| self.replicas[replica].debts() == 0)
        })
    }
}

fn now(clock: &ManualClock) -> u64 {
    clock.now().as_micros()
}

fn policy(algorithm: Algorithm) -> Policy {
    let policy = Policy::new("tested", algorithm, Quota::per_second(12)).unwrap();
    match algorithm {
        Algorithm::FixedWindow => policy.aligned(0).unwrap(),
        _ => policy,
    }
}

/// Where the period or the calendar window that ends at `at` begins.
fn window(algorithm: Algorithm, at: u64) -> u64 {
    match algorithm {
        Algorithm::FixedWindow => at - at % SECOND,
        _ => at - SECOND + 1,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3_000))]

    #[test]
    fn no_window_admits_more_than_the_limit_by_the_store_and_once_more_by_the_stand_ins(
        algorithm in select(vec![Algorithm::FixedWindow, Algorithm::SlidingLog]),
        steps in steps(true),
    ) {
        let mut world = World::new(policy(algorithm), &QUARTERS);
        for step in &steps {
            if let Some((_, hit)) = world.play(step) {
                let since = window(algorithm, hit.at);
                prop_assert!(world.units(since, |by| by.is_none()) <= 12);
                for (replica, quarters) in QUARTERS.into_iter().enumerate() {
                    let admitted = world.units(since, |by| by == Some(replica));
                    prop_assert!(admitted <= 3 * u64::from(quarters));
                }
            }
        }
    }

    #[test]
    fn after_the_return_no_window_admits_more_than_the_limit_with_what_was_handed_back(
        algorithm in select(vec![Algorithm::FixedWindow, Algorithm::SlidingLog]),
        steps in steps(true),
    ) {
        let mut world = World::new(policy(algorithm), &QUARTERS);
        for step in &steps {
            let Some((replica, hit)) = world.play(step) else {
                continue;
            };
            if hit.by.is_none() {
                prop_assert_eq!(world.replicas[replica].debts(), 0);
                let known = world.known_to_the_store(window(algorithm, hit.at));
                prop_assert!(known <= 12, "{} in one window", known);
            }
        }
    }

    #[test]
    fn a_bucket_keeps_its_bound_by_the_store_and_once_more_by_the_stand_ins(
        algorithm in select(BUCKETS.to_vec()),
        steps in steps(true),
    ) {
        let mut world = World::new(policy(algorithm), &QUARTERS);
        for step in &steps {
            if let Some((_, hit)) = world.play(step) {
                for since in world.instants() {
                    let most = |quarters: u32| {
                        let quarters = u64::from(quarters);
                        quarters * 3 + quarters * 3 * (hit.at - since) / SECOND
                    };
                    prop_assert!(world.units(since, |by| by.is_none()) <= most(4));
                    for (replica, quarters) in QUARTERS.into_iter().enumerate() {
                        let admitted = world.units(since, |by| by == Some(replica));
                        prop_assert!(admitted <= most(quarters));
                    }
                }
            }
        }
    }

    #[test]
    fn one_process_keeps_the_bound_of_a_bucket_over_any_time_that_begins_in_the_outage(
        algorithm in select(BUCKETS.to_vec()),
        quarters in 1..=4_u32,
        steps in steps(false),
    ) {
        let mut world = World::new(policy(algorithm), &[quarters]);
        for step in &steps {
            let step = match step {
                Step::Hit { units, .. } => Step::Hit { replica: 0, units: *units },
                other => other.clone(),
            };
            let Some((_, hit)) = world.play(&step) else {
                continue;
            };
            for (index, first) in world.admitted.iter().enumerate().skip(world.before_outage) {
                let admitted: u64 = world.admitted[index..].iter().map(|hit| hit.units).sum();
                prop_assert!(admitted <= 12 + 12 * (hit.at - first.at) / SECOND);
            }
        }
    }

    #[test]
    fn what_is_handed_back_is_no_more_than_what_was_charged(
        algorithm in select(Algorithm::ALL.to_vec()),
        steps in steps(true),
    ) {
        let mut world = World::new(policy(algorithm), &QUARTERS);
        for step in &steps {
            world.play(step);
        }
        let settled: u64 = world.lines.iter().map(Switched::settled).sum();
        prop_assert!(settled <= world.units(0, |by| by.is_some()));
    }
}
