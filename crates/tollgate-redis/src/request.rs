//! What the script is asked, in the form it reads.
//!
//! The argument is one string of little-endian numbers:
//!
//! ```text
//! u64 one more than the instant to judge at, or 0 for the server's clock
//! u16 number of rules
//! for each rule   u8 family, 5 x u64 numbers of the rule
//! for each check  u8 operation (128 added for the last check of its batch, 64 if the batch is judged by the
//!                 millisecond), u16 key, u16 rule, u16 times, u64 amount,
//!                 and for a give-back: u64 instant of the charge, u64 mark
//! ```
//!
//! `times` is for hits that come one by one and ask the same of one key: all are judged in one go.
//!
//! Hits that come one by one, on keys side by side and about which the call asks nothing else, stand there as one check of
//! an operation of its own, a run: `key` is the first of them and `times` their number.

use std::collections::HashMap;

use redis::Cmd;
use tollgate_core::algorithm::{MAX_STORED, Rule};
use tollgate_core::{Batch, Key, Op, Settlement, Timestamp};

use crate::key;
use crate::script::Script;

const HIT: u8 = 0;
const PEEK: u8 = 1;
const GIVE_BACK: u8 = 2;
const TAKE: u8 = 3;
const RUN: u8 = 5;
const BY_MILLISECOND: u8 = 64;
const LAST: u8 = 128;

const RULE_LENGTH: usize = 1 + 5 * 8;

/// One check, made ready to travel.
#[derive(Debug)]
pub(crate) struct Question {
    /// The counter's name.
    pub(crate) name: Box<[u8]>,
    /// How its numbers are read back.
    pub(crate) form: Form,
    rule: [u8; RULE_LENGTH],
    operation: u8,
    amount: u64,
    charge: Option<(u64, u64)>,
    /// What an admitted hit adds to the first number of the answer to it.
    pub(crate) step: u64,
    /// For a hit that INCREX can count: what it costs and under which rule.
    pub(crate) count: Option<Count>,
}

/// A hit on a counter of the server's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Count {
    pub(crate) cost: u64,
    pub(crate) limit: u64,
    /// In milliseconds, at least 2.
    pub(crate) period: u64,
}

impl Count {
    /// The check as INCREX counts it, if it can: a hit on a fixed window that begins whenever it is hit.
    ///
    /// The window ends with the key, one millisecond after the expiry, so one of a single millisecond cannot be told.
    fn new(rule: &Rule, op: Op) -> Option<Self> {
        let Op::Hit(cost) = op else { return None };
        match rule {
            Rule::FixedWindow(rule) => Some(Self {
                // One more than the limit never fits, like anything above it, and stays far below 2^63.
                cost: cost.get().min(rule.limit() + 1),
                limit: rule.limit(),
                period: rule.period() / 1000,
            }),
            _ => None,
        }
    }
}

/// Whether a batch is judged by the clock's milliseconds, because one of its counters lives by them.
pub(crate) fn is_by_millisecond(questions: &[Question]) -> bool {
    questions
        .iter()
        .any(|question| question.form == Form::Counter)
}

/// Whether a policy's windows can be counters of the server's own.
pub(crate) fn is_countable(rule: &Rule) -> bool {
    match rule {
        Rule::FixedWindow(rule) => rule.phase().is_none() && rule.period() >= 2_000,
        _ => false,
    }
}

/// How many numbers a check is answered with, and what they mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Bucket,
    FixedWindow,
    SlidingWindow,
    SlidingLog,
    /// A fixed window that the server's own INCREX counts in.
    Counter,
}

impl Form {
    /// How many numbers follow the first one of an answer.
    pub(crate) const fn others(self) -> usize {
        match self {
            Self::Bucket => 0,
            Self::FixedWindow | Self::Counter => 1,
            Self::SlidingWindow | Self::SlidingLog => 2,
        }
    }

    /// About how many microseconds it takes to judge a check.
    const fn weight(self) -> u32 {
        match self {
            Self::Bucket | Self::FixedWindow | Self::SlidingWindow | Self::Counter => 1,
            Self::SlidingLog => 8,
        }
    }
}

impl Question {
    /// `counters` says whether the server has INCREX, so that what it can count is counted by it.
    fn new(check: &tollgate_core::Check<'_>, counters: bool) -> Self {
        let rule = check.policy.rule();
        let (mut form, numbers) = numbers(rule);
        let counted = counters && is_countable(rule);
        let mut name: fn(&Key<'_>) -> Vec<u8> = key::name;
        let mut count = None;
        if counted {
            (form, name, count) = (Form::Counter, key::counter, Count::new(rule, check.op));
        }
        let (operation, amount, charge) = operation(rule, check.op);
        let [_, weight, ..] = numbers;
        let mut packed = [0; RULE_LENGTH];
        packed[0] = form as u8 + 1;
        for (place, number) in packed[1..].chunks_exact_mut(8).zip(numbers) {
            place.copy_from_slice(&number.to_le_bytes());
        }
        Self {
            name: name(&check.key).into_boxed_slice(),
            count,
            form,
            rule: packed,
            operation,
            amount,
            charge,
            // Beyond any range, it fits nowhere and is added to nothing.
            step: amount.saturating_mul(weight),
        }
    }

    /// The questions of a batch, in its order.
    pub(crate) fn of_batch(batch: &Batch<'_>, counters: bool) -> Vec<Self> {
        let question = |check| Self::new(check, counters);
        let mut questions: Vec<Self> = batch.checks().iter().map(question).collect();
        if is_by_millisecond(&questions) {
            for question in &mut questions {
                question.operation |= BY_MILLISECOND;
            }
        }
        questions
    }
}

/// The rule as the script knows it: capacity, weight of a unit, weight of a full key, pace and grid.
fn numbers(rule: &Rule) -> (Form, [u64; 5]) {
    let window = |limit, period, grid| [limit, 1, limit, period, grid];
    match rule {
        Rule::Bucket(rule) => (
            Form::Bucket,
            [
                rule.capacity(),
                rule.unit(),
                rule.full(),
                rule.drain(),
                rule.tick(),
            ],
        ),
        Rule::FixedWindow(rule) => {
            let grid = rule.phase().map_or(0, |phase| phase + 1);
            (Form::FixedWindow, window(rule.limit(), rule.period(), grid))
        }
        Rule::SlidingWindow(rule) => (Form::SlidingWindow, window(rule.limit(), rule.period(), 0)),
        Rule::SlidingLog(rule) => (Form::SlidingLog, window(rule.limit(), rule.period(), 0)),
    }
}

/// The operation, its amount, and for a give-back the charge it belongs to.
///
/// An amount beyond [`MAX_STORED`] does the same as that number: as a cost it never fits, as a settlement it is more
/// than any state holds. So the script never sees a number that a double does not hold.
fn operation(rule: &Rule, op: Op) -> (u8, u64, Option<(u64, u64)>) {
    match op {
        Op::Hit(cost) => (HIT, cost.get().min(MAX_STORED), None),
        Op::Peek(cost) => (PEEK, cost.get().min(MAX_STORED), None),
        Op::Settle(settlement) => {
            let Settlement {
                charged_at,
                charged,
                mark,
                actual,
            } = settlement;
            let charged = charged.get();
            let weight = match rule {
                Rule::Bucket(rule) => rule.unit(),
                _ => 1,
            };
            let amount = charged
                .abs_diff(actual)
                .saturating_mul(weight)
                .min(MAX_STORED);
            if actual > charged {
                (TAKE, amount, None)
            } else {
                let charge = (charged_at.as_micros(), mark.min(MAX_STORED));
                (GIVE_BACK, amount, Some(charge))
            }
        }
    }
}

/// One check as it stands in the argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Check {
    /// Whether it is all of its batch.
    alone: bool,
    operation: u8,
    key: u16,
    rule: u16,
    times: u16,
    amount: u64,
    charge: Option<(u64, u64)>,
}

impl Check {
    const LENGTH: usize = 1 + 3 * 2 + 8;

    fn write(self, into: &mut Vec<u8>) {
        into.push(self.operation);
        into.extend_from_slice(&self.key.to_le_bytes());
        into.extend_from_slice(&self.rule.to_le_bytes());
        into.extend_from_slice(&self.times.to_le_bytes());
        into.extend_from_slice(&self.amount.to_le_bytes());
        if let Some((charged_at, mark)) = self.charge {
            into.extend_from_slice(&charged_at.to_le_bytes());
            into.extend_from_slice(&mark.to_le_bytes());
        }
    }

    /// Whether `next` asks the same as this run, of the key after its last one.
    fn goes_on_with(&self, next: &Self) -> bool {
        let alike = self.rule == next.rule && self.amount == next.amount;
        alike && self.key.checked_add(self.times) == Some(next.key)
    }
}

/// One call of the script: any number of batches, each judged on its own, one after the other.
#[derive(Debug, Default)]
pub(crate) struct Request {
    at: Option<Timestamp>,
    rules: Vec<[u8; RULE_LENGTH]>,
    checks: Vec<Check>,
    judging: u32,
    names: Vec<Box<[u8]>>,
    /// How many checks there are about each name.
    uses: Vec<u32>,
    /// Filled once there is more than one name.
    places: HashMap<Box<[u8]>, u16>,
}

impl Request {
    /// A call judged at `at`, or by the server's clock.
    pub(crate) fn new(at: Option<Timestamp>) -> Self {
        Self {
            at,
            ..Self::default()
        }
    }

    /// About how many microseconds it keeps the server busy: reading and writing a key takes longer than judging.
    pub(crate) fn weight(&self) -> u32 {
        const KEY: u32 = 8;
        u32::from(number(self.names.len())) * KEY + self.judging
    }

    /// Adds a batch, which is judged after those already there.
    pub(crate) fn push(&mut self, questions: &[Question]) {
        for (index, question) in questions.iter().enumerate() {
            let last = index + 1 == questions.len();
            let check = Check {
                alone: questions.len() == 1,
                operation: question.operation | if last { LAST } else { 0 },
                key: self.place(&question.name),
                rule: self.rule(&question.rule),
                times: 1,
                amount: question.amount,
                charge: question.charge,
            };
            if !self.repeats(check) {
                self.judging += question.form.weight();
                self.checks.push(check);
                self.uses[usize::from(check.key) - 1] += 1;
            }
        }
    }

    /// Counts a check once more if it is what was asked last. Returns whether it was.
    fn repeats(&mut self, check: Check) -> bool {
        let hit = check.operation & !BY_MILLISECOND == HIT | LAST;
        if !(hit && check.alone) || self.is_about_a_log(&check) {
            return false;
        }
        let Some(last) = self.checks.last_mut() else {
            return false;
        };
        let times = last.times;
        match times.checked_add(1) {
            Some(more) if *last == (Check { times, ..check }) => {
                last.times = more;
                true
            }
            _ => false,
        }
    }

    /// How many hits each answer stands for, in the order of the checks.
    pub(crate) fn times(&self) -> Vec<u16> {
        self.checks.iter().map(|check| check.times).collect()
    }

    /// Whether a check is a hit that came by itself, on a key that nothing else in the call is about.
    fn is_lone_hit(&self, check: &Check) -> bool {
        check.alone
            && check.operation == HIT | LAST
            && check.times == 1
            && self.uses[usize::from(check.key) - 1] == 1
            && !self.is_about_a_log(check)
    }

    fn is_about_a_log(&self, check: &Check) -> bool {
        self.rules[usize::from(check.rule) - 1][0] == Form::SlidingLog as u8 + 1
    }

    /// The command that calls the script, by its hash or by its text.
    pub(crate) fn command(&self, script: &Script, how: crate::script::How) -> Cmd {
        let mut command = script.command(how);
        command.arg(self.names.len());
        for name in &self.names {
            command.arg(&name[..]);
        }
        command.arg(self.argument());
        command
    }

    fn argument(&self) -> Vec<u8> {
        let length = 10 + self.rules.len() * RULE_LENGTH + self.checks.len() * Check::LENGTH;
        let mut argument = Vec::with_capacity(length);
        let at = self.at.map_or(0, |at| at.as_micros() + 1);
        argument.extend_from_slice(&at.to_le_bytes());
        argument.extend_from_slice(&number(self.rules.len()).to_le_bytes());
        for rule in &self.rules {
            argument.extend_from_slice(rule);
        }
        let mut checks = self.checks.iter().copied().peekable();
        while let Some(mut check) = checks.next() {
            if self.is_lone_hit(&check) {
                check.operation = RUN;
                let next =
                    |next: &Check, run: &Check| self.is_lone_hit(next) && run.goes_on_with(next);
                while checks.next_if(|other| next(other, &check)).is_some() {
                    check.times += 1;
                }
            }
            check.write(&mut argument);
        }
        argument
    }

    /// The place of a name among the script's keys, counted from 1.
    fn place(&mut self, name: &[u8]) -> u16 {
        match &self.names[..] {
            [only] if **only == *name => return 1,
            [only] if self.places.is_empty() => {
                self.places.insert(only.clone(), 1);
            }
            _ => {}
        }
        if let Some(place) = self.places.get(name) {
            return *place;
        }
        self.names.push(name.into());
        self.uses.push(0);
        let place = number(self.names.len());
        if place > 1 {
            self.places.insert(name.into(), place);
        }
        place
    }

    fn rule(&mut self, rule: &[u8; RULE_LENGTH]) -> u16 {
        let known = self.rules.iter().position(|known| known == rule);
        let index = known.unwrap_or_else(|| {
            self.rules.push(*rule);
            self.rules.len() - 1
        });
        number(index + 1)
    }
}

/// A count within one call, which [`Batch::MAX_CHECKS`] and the coalescer's bound keep far below 2^16.
fn number(count: usize) -> u16 {
    u16::try_from(count).expect("a call holds fewer than 65536 checks")
}
