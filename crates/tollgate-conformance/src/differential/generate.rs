//! Random sequences that go where limiters break: boundaries to the microsecond, clock steps, costs that just fit.

use fastrand::Rng;
use tollgate_core::{Algorithm, Batch, Check, Op, Settlement, Timestamp};

use crate::counter::{Answer, Counter, cost};
use crate::differential::oracle::Oracle;
use crate::differential::policies::{self, pick};
use crate::differential::sequence::{Ask, Sequence, Slot, Step};
use crate::testbed::START;

const STEPS: usize = 40;

/// What sequences a case plays.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Profile<'a> {
    pub(crate) algorithms: &'a [Algorithm],
    /// Several checks in one batch.
    pub(crate) batches: bool,
    /// Keys whose limit changes.
    pub(crate) changing_policies: bool,
    pub(crate) extreme_quotas: bool,
    /// Some steps by [`Store::apply_now`](tollgate_core::Store::apply_now).
    pub(crate) at_once: bool,
}

impl<'a> Profile<'a> {
    pub(crate) const fn of(algorithms: &'a [Algorithm]) -> Self {
        Self {
            algorithms,
            batches: false,
            changing_policies: false,
            extreme_quotas: false,
            at_once: false,
        }
    }
}

/// The sequence of `seed`. Its keys are of one subject unless the store judges `any_keys` in one batch.
pub(crate) fn sequence(profile: &Profile<'_>, any_keys: bool, seed: u64) -> Sequence {
    let mut rng = Rng::with_seed(seed);
    let slots: Vec<Slot> = (0..rng.usize(1..=4))
        .map(|nth| slot(&mut rng, profile, any_keys, nth))
        .collect();
    let mut story = Story {
        oracle: Oracle::new(slots.len()),
        seen: vec![Seen::default(); slots.len()],
        now: start(&mut rng),
        slots,
    };
    let steps = (0..STEPS).map(|_| story.step(&mut rng, profile)).collect();
    Sequence {
        slots: story.slots,
        steps,
    }
}

fn slot(rng: &mut Rng, profile: &Profile<'_>, any_keys: bool, nth: usize) -> Slot {
    let algorithm = *pick(rng, profile.algorithms);
    let mut policies = vec![policies::random(rng, algorithm, profile.extreme_quotas)];
    if profile.changing_policies {
        let others = rng.usize(1..=2);
        policies.extend(
            (0..others).map(|_| policies::of_same_key(rng, algorithm, profile.extreme_quotas)),
        );
    }
    Slot {
        scope: format!("scope {nth}"),
        subject: if any_keys {
            format!("subject {nth}")
        } else {
            "subject".to_owned()
        },
        policies,
    }
}

/// Mostly an ordinary day, sometimes either end of the range.
fn start(rng: &mut Rng) -> u64 {
    match rng.u8(..10) {
        0 => rng.u64(..100),
        1 => Timestamp::MAX.as_micros() - rng.u64(..10_000_000),
        _ => START + rng.u64(..86_400_000_000),
    }
}

/// What the story knows of a key from the last answer about it.
#[derive(Clone, Debug, Default)]
struct Seen {
    remaining: u64,
    /// When the hit that was denied last is admitted.
    due: Option<u64>,
    /// When the key is as good as never seen.
    empty: Option<u64>,
    receipt: Option<Settlement>,
}

struct Story {
    slots: Vec<Slot>,
    oracle: Oracle,
    seen: Vec<Seen>,
    now: u64,
}

impl Story {
    fn step(&mut self, rng: &mut Rng, profile: &Profile<'_>) -> Step {
        if rng.u8(..25) == 0 {
            let slots: Vec<usize> = (0..self.slots.len()).filter(|_| rng.bool()).collect();
            self.oracle.reset(&slots);
            return Step::Reset(slots);
        }
        self.now = self.moved(rng);
        let at = Timestamp::saturating_from_micros(self.now);
        let mut order: Vec<usize> = (0..self.slots.len()).collect();
        rng.shuffle(&mut order);
        if profile.batches {
            order.truncate(rng.usize(1..=order.len()));
        } else {
            order.truncate(1);
        }
        let asks: Vec<Ask> = order.into_iter().map(|slot| self.ask(rng, slot)).collect();
        self.watch(&asks, at);
        Step::Ask {
            at,
            asks,
            at_once: profile.at_once && rng.bool(),
        }
    }

    /// Where time moves to: nowhere, a little, to the instants where something changes and right before, far away.
    fn moved(&self, rng: &mut Rng) -> u64 {
        let slot = rng.usize(..self.slots.len());
        let quota = pick(rng, &self.slots[slot].policies).quota();
        let (period, seen) = (quota.period_micros(), &self.seen[slot]);
        let now = self.now;
        let moved = match rng.u8(..28) {
            0..=6 => now,
            7 => now + 1,
            8 => now + rng.u64(..20),
            9..=11 => now + rng.u64(..period),
            12 => now + period / quota.limit().max(1),
            13 => now + period - 1,
            14 => now + period,
            15 => now + period + 1,
            16 => now + rng.u64(..4 * period),
            17..=18 => seen.due.unwrap_or(now),
            19 => seen.due.unwrap_or(now).saturating_sub(1),
            20 => seen.empty.unwrap_or(now),
            21 => seen.empty.unwrap_or(now).saturating_sub(1),
            22 => now.saturating_sub(1),
            23..=24 => now.saturating_sub(rng.u64(..period)),
            25 => now.saturating_sub(rng.u64(..4 * period)),
            26 => now + rng.u64(..100 * period),
            _ => rng.u64(..=Timestamp::MAX.as_micros()),
        };
        moved.min(Timestamp::MAX.as_micros())
    }

    fn ask(&self, rng: &mut Rng, slot: usize) -> Ask {
        let policy = rng.usize(..self.slots[slot].policies.len());
        let capacity = self.slots[slot].policies[policy].rule().capacity();
        let remaining = self.seen[slot].remaining;
        let units = match rng.u8(..16) {
            0..=6 => 1,
            7 => 2,
            8..=9 => remaining,
            10 => remaining + 1,
            11 => capacity,
            12 => capacity + 1,
            13 => u64::MAX,
            _ => rng.u64(..=capacity),
        };
        let units = cost(units.max(1));
        let op = match (rng.u8(..20), self.seen[slot].receipt) {
            (0..=2, _) => Op::Peek(units),
            (3..=6, Some(receipt)) => Op::Settle(Settlement {
                actual: actual(rng, &receipt),
                ..receipt
            }),
            _ => Op::Hit(units),
        };
        Ask { slot, policy, op }
    }

    /// Lets core answer, so that later steps can go where it becomes interesting.
    fn watch(&mut self, asks: &[Ask], at: Timestamp) {
        for ask in asks {
            if self.oracle.may_have_been_dropped(ask, at) {
                self.oracle.forget(ask.slot);
            }
        }
        let counters: Vec<Counter> = asks
            .iter()
            .map(|ask| self.slots[ask.slot].counter("", ask.policy))
            .collect();
        let checks: Vec<Check<'_>> = asks
            .iter()
            .zip(&counters)
            .map(|(ask, counter)| counter.check(ask.op))
            .collect();
        let batch = Batch::new(&checks).expect("slots are different keys");
        let verdicts = self.oracle.judge(&self.slots, &batch, asks, at);
        let after = |span: std::time::Duration| (at + span).as_micros();
        for ((ask, check), verdict) in asks.iter().zip(&checks).zip(verdicts.as_slice()) {
            let answer = Answer::new(check, *verdict, at, verdicts.source(), false);
            let seen = &mut self.seen[ask.slot];
            seen.remaining = answer.remaining;
            seen.empty = Some(after(answer.reset_after));
            if !answer.allowed {
                seen.due = answer.retry_after.map(after);
            } else if let (Op::Hit(charged), true) = (ask.op, verdicts.is_allowed()) {
                seen.receipt = Some(Settlement {
                    charged_at: at,
                    charged,
                    mark: verdict.mark(),
                    actual: 0,
                });
            }
        }
    }
}

/// What a hit really used: nothing, all, a little less or more, or anything.
fn actual(rng: &mut Rng, receipt: &Settlement) -> u64 {
    let charged = receipt.charged.get();
    match rng.u8(..8) {
        0..=1 => 0,
        2 => charged,
        3 => charged - 1,
        4 => charged + 1,
        5 => rng.u64(..=charged),
        6 => rng.u64(..=charged.saturating_mul(3)),
        _ => u64::MAX,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How often something worth asking about happens in the sequences of one run.
    #[derive(Debug, Default)]
    struct Met {
        denied: u32,
        admitted_when_due: u32,
        denied_right_before: u32,
        gone_back: u32,
        settled: u32,
        peeked: u32,
        reset: u32,
    }

    fn met(algorithm: Algorithm) -> Met {
        let mut met = Met::default();
        for seed in 0..crate::Options::DEFAULT_CASES {
            let Sequence { slots, steps } = sequence(&Profile::of(&[algorithm]), true, seed);
            let mut oracle = Oracle::new(slots.len());
            let (mut last, mut due) = (Timestamp::EPOCH, vec![None; slots.len()]);
            for step in steps {
                let Step::Ask { at, asks, .. } = step else {
                    met.reset += 1;
                    continue;
                };
                let [ask] = asks[..] else {
                    panic!("one check a step")
                };
                let counter = slots[ask.slot].counter("", ask.policy);
                let check = counter.check(ask.op);
                let verdicts = oracle.judge(&slots, &Batch::of_one(&check), &asks, at);
                let answer =
                    Answer::new(&check, verdicts.as_slice()[0], at, verdicts.source(), false);
                met.denied += u32::from(!answer.allowed);
                met.admitted_when_due += u32::from(answer.allowed && due[ask.slot] == Some(at));
                let right_before = due[ask.slot] == Some(at + std::time::Duration::from_micros(1));
                met.denied_right_before += u32::from(!answer.allowed && right_before);
                met.gone_back += u32::from(at < last);
                met.settled += u32::from(matches!(ask.op, Op::Settle(_)));
                met.peeked += u32::from(matches!(ask.op, Op::Peek(_)));
                last = at;
                if let (false, Some(wait)) = (answer.allowed, answer.retry_after) {
                    due[ask.slot] = Some(at + wait);
                }
            }
        }
        met
    }

    #[test]
    fn the_sequences_of_one_run_go_where_limiters_break() {
        for algorithm in Algorithm::ALL {
            let met = met(algorithm);
            let counts = [
                met.denied,
                met.admitted_when_due,
                met.denied_right_before,
                met.gone_back,
                met.settled,
                met.peeked,
                met.reset,
            ];
            assert!(
                counts.iter().all(|count| *count > 10),
                "{algorithm}: {met:?}"
            );
        }
    }
}
