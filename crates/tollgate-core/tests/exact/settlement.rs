//! A charge that is corrected later counts as what it turned out to be, and never for less.

use std::collections::VecDeque;

use proptest::prelude::*;
use tollgate_core::{Algorithm, Policy, State, Timestamp};

use crate::draw::{cases, open_policies, open_quotas, policy};
use crate::model::{Exact, exact};
use crate::script::{Actual, Move, Units, actuals, forwards, starts, timed_units, units};
use crate::subject::{Answer, Charge, Subject, at};

/// A subject, and the same one as if one of its charges had been for another amount from the start.
struct TwoWorlds {
    real: Subject,
    imagined: Subject,
    now: Timestamp,
    charge: Charge,
    actual: u64,
}

impl TwoWorlds {
    /// Hits before the charge, the charge and what it will turn out to be, and hits after it.
    ///
    /// What the real subject admits is charged to the imagined one too, whether or not it fits there.
    fn play(
        policy: &Policy,
        start: Timestamp,
        [before, after]: [&[(Move, Units)]; 2],
        (charged, actual): (Units, Actual),
    ) -> Option<Self> {
        let mut hits = Hits {
            subject: Subject::new(policy),
            now: start,
            last: None,
        };
        for hit in before {
            hits.play(*hit);
        }
        let mut imagined = hits.subject.clone();
        let units = hits.count(charged);
        let charge = hits.subject.reserve(hits.now, units)?;
        let actual = actual.of(units);
        imagined.owe(hits.now, actual);
        for hit in after {
            let admitted = hits.play(*hit);
            imagined.owe(hits.now, admitted);
        }
        Some(Self {
            real: hits.subject,
            imagined,
            now: hits.now,
            charge,
            actual,
        })
    }

    fn settle(&mut self) -> u64 {
        let settled = self.real.settle(self.now, self.charge, self.actual);
        settled.remaining
    }
}

/// Plays hits whose size depends on what remains.
struct Hits {
    subject: Subject,
    now: Timestamp,
    last: Option<Answer>,
}

impl Hits {
    fn count(&self, units: Units) -> u64 {
        let capacity = self.subject.policy.rule().capacity();
        units.count(capacity, self.subject.peek(self.now, 1).remaining)
    }

    /// Returns the units that were admitted.
    fn play(&mut self, (moves, units): (Move, Units)) -> u64 {
        let last = self.last.as_ref();
        self.now = moves.from(self.now, &self.subject.policy, last);
        let units = self.count(units);
        let answer = self.subject.hit(self.now, units);
        self.last = Some(answer);
        if answer.allowed { units } else { 0 }
    }
}

proptest! {
    #![proptest_config(cases(3_000))]

    /// Giving back makes no room that the smaller charge would not have left.
    #[test]
    fn giving_back_leaves_no_more_than_if_the_smaller_amount_had_been_charged(
        policy in open_policies(),
        start in starts(),
        before in proptest::collection::vec((forwards(), units()), 0..12),
        after in proptest::collection::vec((forwards(), units()), 0..12),
        charged in units(),
        actual in prop_oneof![Just(Actual::Nothing), (0..=15_u64).prop_map(Actual::Share)],
    ) {
        let worlds = TwoWorlds::play(&policy, start, [&before, &after], (charged, actual));
        let Some(mut worlds) = worlds else {
            return Ok(());
        };
        let before = worlds.real.peek(worlds.now, 1).remaining;
        let after = worlds.settle();
        let imagined = worlds.imagined.peek(worlds.now, 1).remaining;
        prop_assert!(after >= before);
        prop_assert!(after <= before.max(imagined), "{before} -> {after}, not {imagined}");
    }

    /// Charging the rest later is never cheaper than having charged it at first.
    #[test]
    fn charging_on_top_leaves_no_more_than_if_all_had_been_charged_at_once(
        policy in open_policies(),
        start in starts(),
        before in proptest::collection::vec((forwards(), units()), 0..12),
        after in proptest::collection::vec((forwards(), units()), 0..12),
        charged in units(),
        actual in (17..=64_u64).prop_map(Actual::Share),
    ) {
        let worlds = TwoWorlds::play(&policy, start, [&before, &after], (charged, actual));
        let Some(mut worlds) = worlds else {
            return Ok(());
        };
        // A sliding window that was fresh in between began anew, and windows that lie otherwise weigh otherwise.
        let began = |subject: &Subject| subject.state.as_ref().and_then(State::time);
        let compares = policy.algorithm() != Algorithm::SlidingWindow || began(&worlds.real) == began(&worlds.imagined);
        prop_assume!(compares);
        let after = worlds.settle();
        prop_assert!(after <= worlds.imagined.peek(worlds.now, 1).remaining);
    }

    /// At once, giving back everything is as if nothing had been charged, but for the window it may have opened.
    #[test]
    fn giving_everything_back_at_once_restores_what_remained(
        policy in open_policies(),
        (start, hits) in timed_units(forwards(), 12),
        charged in units(),
    ) {
        let mut played = Hits { subject: Subject::new(&policy), now: start, last: None };
        for hit in hits {
            played.play(hit);
        }
        let units = played.count(charged);
        let Hits { mut subject, now, .. } = played;
        let before = subject.peek(now, 1);
        if let Some(charge) = subject.reserve(now, units) {
            let after = subject.settle(now, charge, 0);
            prop_assert_eq!(after.remaining, before.remaining);
            if policy.algorithm() != Algorithm::FixedWindow {
                prop_assert_eq!(after.reset_after, before.reset_after);
            }
        }
    }

    /// A bucket as a queue of units that know whose they are: what is given back is what has not drained yet.
    #[test]
    fn a_bucket_gives_back_exactly_the_units_that_are_still_in_its_queue(
        quota in open_quotas(),
        (start, hits) in timed_units(forwards(), 16),
        chosen in any::<prop::sample::Index>(),
        actual in actuals(),
    ) {
        let policy = policy(Algorithm::TokenBucket, quota);
        let tollgate_core::Rule::Bucket(rule) = policy.rule() else {
            panic!("a bucket");
        };
        let mut subject = Subject::new(&policy);
        let mut queue = Queue::new(exact(rule.drain()) / exact(rule.unit()), rule.tick());
        let mut charges = Vec::new();
        let (mut now, mut last) = (start, None);
        for (moves, units) in hits {
            now = moves.from(now, &policy, last.as_ref());
            queue.drain(now);
            let units = units.count(quota.capacity(), subject.peek(now, 1).remaining);
            let reserved = subject.reserve(now, units);
            if let Some(charge) = reserved {
                queue.hits.push_back((charges.len(), exact(units)));
                charges.push(charge);
            }
            last = Some(subject.peek(now, 1));
        }
        prop_assume!(!charges.is_empty());

        let index = chosen.index(charges.len());
        let charge = charges[index];
        let actual = actual.of(charge.cost.get()).min(charge.cost.get());
        queue.give_back(index, exact(charge.cost.get() - actual));
        let answer = subject.settle(now, charge, actual);
        let left = exact(quota.capacity()) - queue.sum();
        prop_assert_eq!(left.floor().to_integer(), answer.remaining.into());
    }
}

/// Units in the order they came, each with the hit it belongs to.
struct Queue {
    rate: Exact,
    tick: u64,
    seen: Option<u64>,
    hits: VecDeque<(usize, Exact)>,
}

impl Queue {
    fn new(rate: Exact, tick: u64) -> Self {
        Self {
            rate,
            tick,
            seen: None,
            hits: VecDeque::new(),
        }
    }

    fn drain(&mut self, now: Timestamp) {
        let ticks = now.as_micros() / self.tick;
        let gone = ticks - self.seen.replace(ticks).unwrap_or(ticks);
        let mut left = exact(gone) * &self.rate;
        while let Some((_, units)) = self.hits.front_mut() {
            if *units > left {
                *units -= left;
                return;
            }
            left -= units.clone();
            self.hits.pop_front();
        }
    }

    fn give_back(&mut self, hit: usize, units: Exact) {
        let mine = self.hits.iter_mut().find(|(owner, _)| *owner == hit);
        if let Some((_, left)) = mine {
            *left = (left.clone() - units).max(exact(0));
        }
    }

    fn sum(&self) -> Exact {
        self.hits.iter().map(|(_, units)| units.clone()).sum()
    }
}

/// Without the rule of the queue, ten could be charged, drained and given back: twenty at once out of a bucket of ten.
#[test]
fn what_has_drained_is_not_given_back() {
    let ten = "10/second".parse().expect("legal");
    let mut subject = Subject::new(&policy(Algorithm::TokenBucket, ten));
    let start = 1_000_000_000_000_000;
    let charge = subject.reserve(at(start), 10).expect("fits");
    let later = at(start + 1_000_000);
    assert!(subject.hit(later, 10).allowed);
    assert_eq!(subject.settle(later, charge, 0).remaining, 0);
}

/// A refund after its window has rolled over would leave a negative count, or room for one hit too many.
#[test]
fn what_belongs_to_a_window_that_is_over_is_not_given_back() {
    for algorithm in [
        Algorithm::FixedWindow,
        Algorithm::SlidingWindow,
        Algorithm::SlidingLog,
    ] {
        let ten = "10/second".parse().expect("legal");
        let mut subject = Subject::new(&policy(algorithm, ten));
        let start = 1_000_000_000_000_000;
        let charge = subject.reserve(at(start), 2).expect("fits");
        let later = at(start + 1_900_000);
        assert!(subject.hit(later, 10).allowed, "{algorithm}");
        assert_eq!(subject.settle(later, charge, 0).remaining, 0, "{algorithm}");
    }
}

/// The one promise that does not hold once somebody else has given units back too, as its documentation says.
///
/// Of two charges of five, the first is given back at once, so that the second one's units drain half a second sooner
/// than its receipt believes; given back as well, it makes room that is no longer its own.
#[test]
fn overlapping_settlements_of_a_bucket_may_give_back_what_has_drained() {
    let ten = "10/second".parse().expect("legal");
    let mut subject = Subject::new(&policy(Algorithm::TokenBucket, ten));
    let start = 1_000_000_000_000_000;
    let first = subject.reserve(at(start), 5).expect("fits");
    let second = subject.reserve(at(start), 5).expect("fits");
    assert_eq!(subject.settle(at(start), first, 0).remaining, 5);
    let later = at(start + 500_000);
    assert!(subject.hit(later, 10).allowed);
    assert_eq!(subject.settle(later, second, 0).remaining, 5);
}
