//! A batch in the numbers of the SQL function, and its answer back into verdicts.

use tollgate_core::algorithm::{FixedWindowState, MAX_STORED, SlidingWindowState};
use tollgate_core::{Batch, Check, ErrorKind, Family, Key, Op, Rule, Timestamp, Verdict, Verdicts};

use crate::error::Failure;

/// Numbers per check in the function's argument; the SQL file says what each is.
pub(crate) const STRIDE: usize = 10;
/// What is asked, if it is a hit.
const HIT: i64 = 0;
/// Numbers per check in the function's answer.
const ANSWER: usize = 4;
/// Bytes of a key in front of the subject.
const SPACE: usize = 16;

/// One check, on its own feet: it may outlive the call it came from.
#[derive(Clone, Debug)]
struct Asked {
    key: Box<[u8]>,
    family: Family,
    numbers: [i64; STRIDE],
}

/// One batch, on its own feet.
#[derive(Clone, Debug)]
pub(crate) struct Question {
    checks: Vec<Asked>,
}

impl Question {
    pub(crate) fn new(batch: &Batch<'_>) -> Self {
        let mut checks: Vec<Asked> = batch.checks().iter().map(Asked::new).collect();
        if let Some(first) = checks.first_mut() {
            // At most `Batch::MAX_CHECKS`.
            first.numbers[0] = saturating(u64::try_from(batch.checks().len()).unwrap_or(0));
        }
        Self { checks }
    }

    /// How many checks it holds.
    pub(crate) fn len(&self) -> usize {
        self.checks.len()
    }

    /// The subject of the first check.
    pub(crate) fn first_subject(&self) -> &[u8] {
        let key = self.checks.first().map(|check| &check.key[SPACE..]);
        key.unwrap_or_default()
    }

    pub(crate) fn keys(&self) -> impl Iterator<Item = &[u8]> {
        self.checks.iter().map(|check| &*check.key)
    }

    /// If it is nothing but a hit on a bucket: its key, then capacity, unit, drain and tick of the bucket, and the cost.
    pub(crate) fn hit_on_a_bucket(&self) -> Option<(&[u8], [i64; 5])> {
        match &self.checks[..] {
            [
                Asked {
                    key,
                    family: Family::Bucket,
                    numbers: [_, _, HIT, capacity, unit, drain, tick, cost, ..],
                },
            ] => Some((key, [*capacity, *unit, *drain, *tick, *cost])),
            _ => None,
        }
    }

    /// The verdicts of this batch, from its part of the answer.
    fn verdicts(&self, now: Timestamp, words: &[i64]) -> Result<Verdicts, Failure> {
        let (words, _) = words.as_chunks::<ANSWER>();
        let verdicts = self.checks.iter().zip(words);
        let verdicts = verdicts
            .map(|(check, words)| check.verdict(words))
            .collect::<Result<Box<[_]>, Failure>>()?;
        Ok(Verdicts::many(now, verdicts))
    }
}

impl Asked {
    fn new(check: &Check<'_>) -> Self {
        let mut numbers = [0; STRIDE];
        let (family, rule) = rule_numbers(check.policy.rule());
        numbers[3..7].copy_from_slice(&rule);
        let (op, units, charged_at, mark) = match check.op {
            Op::Hit(cost) => (HIT, cost.get(), 0, 0),
            Op::Peek(cost) => (1, cost.get(), 0, 0),
            Op::Settle(settlement) => {
                let charged = settlement.charged.get();
                let charged_at = saturating(settlement.charged_at.as_micros());
                // No state holds more than `MAX_STORED`, so to give or take more than that is the same.
                if settlement.actual > charged {
                    let extra = (settlement.actual - charged).min(MAX_STORED);
                    (2, extra, charged_at, 0)
                } else {
                    let back = (charged - settlement.actual).min(MAX_STORED);
                    (3, back, charged_at, settlement.mark.cast_signed())
                }
            }
        };
        numbers[2] = op;
        // A cost beyond the range fits no more than the end of the range does.
        numbers[7] = saturating(units);
        numbers[8] = charged_at;
        numbers[9] = mark;
        Self {
            key: key_bytes(&check.key),
            family,
            numbers,
        }
    }

    fn verdict(&self, words: &[i64; ANSWER]) -> Result<Verdict, Failure> {
        let [allowed, first, second, third] = *words;
        let allowed = allowed == 1;
        let first = word(first)?;
        Ok(match self.family {
            Family::Bucket => Verdict::bucket(allowed, first),
            Family::FixedWindow => {
                let start = u64::try_from(second).ok();
                let window = start.map(|start| FixedWindowState {
                    start: Timestamp::saturating_from_micros(start),
                    count: first,
                });
                Verdict::fixed_window(allowed, window)
            }
            Family::SlidingWindow => Verdict::sliding_window(
                allowed,
                SlidingWindowState {
                    start: Timestamp::saturating_from_micros(word(second)?),
                    count: first,
                    previous: word(third)?,
                },
            ),
            Family::SlidingLog => Verdict::sliding_log(allowed, first, word(second)?, word(third)?),
        })
    }
}

/// Sixteen bytes for all but the subject, then the subject: ordered as keys are.
pub(crate) fn key_bytes(key: &Key<'_>) -> Box<[u8]> {
    let mut bytes = Vec::with_capacity(SPACE + key.subject().len());
    bytes.extend_from_slice(&key.digest().to_be_bytes());
    bytes.extend_from_slice(key.subject());
    bytes.into_boxed_slice()
}

fn rule_numbers(rule: &Rule) -> (Family, [i64; 4]) {
    let (family, numbers) = match rule {
        Rule::Bucket(rule) => (
            Family::Bucket,
            [rule.capacity(), rule.unit(), rule.drain(), rule.tick()],
        ),
        Rule::FixedWindow(rule) => {
            let phase = rule.phase().map_or(-1, saturating);
            return (
                Family::FixedWindow,
                [
                    saturating(rule.limit()),
                    saturating(rule.period()),
                    phase,
                    0,
                ],
            );
        }
        Rule::SlidingWindow(rule) => (Family::SlidingWindow, [rule.limit(), rule.period(), 0, 0]),
        Rule::SlidingLog(rule) => (Family::SlidingLog, [rule.limit(), rule.period(), 0, 0]),
    };
    (family, numbers.map(saturating))
}

const fn family_number(family: Family) -> i16 {
    match family {
        Family::Bucket => 0,
        Family::FixedWindow => 1,
        Family::SlidingWindow => 2,
        Family::SlidingLog => 3,
    }
}

fn saturating(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

pub(crate) fn word(number: i64) -> Result<u64, Failure> {
    u64::try_from(number).map_err(|_| malformed(format!("it holds {number}, which is negative")))
}

pub(crate) fn malformed_length(found: usize, expected: usize) -> Failure {
    malformed(format!("it holds {found} numbers in place of {expected}"))
}

pub(crate) fn malformed(detail: impl std::fmt::Display) -> Failure {
    let message = format!("the function's answer is not one of this library's schema: {detail}");
    Failure::new(ErrorKind::Corrupt, message).with_charge_unknown()
}

/// Several questions as one call of the function.
#[derive(Debug, Default)]
pub(crate) struct Arguments<'a> {
    pub(crate) keys: Vec<&'a [u8]>,
    pub(crate) families: Vec<i16>,
    pub(crate) checks: Vec<i64>,
    /// Whether a batch has several checks, so that their rows have to be read at one snapshot.
    pub(crate) together: bool,
}

impl<'a> Arguments<'a> {
    /// `questions` in their order, with their keys once each and ascending.
    pub(crate) fn new(questions: &[&'a Question]) -> Self {
        let asked = || questions.iter().flat_map(|question| &question.checks);
        let mut keys: Vec<(&[u8], i16)> = asked()
            .map(|check| (&*check.key, family_number(check.family)))
            .collect();
        keys.sort_unstable();
        keys.dedup();
        let mut checks = Vec::with_capacity(asked().count() * STRIDE);
        for check in asked() {
            let found = keys.binary_search_by(|(key, _)| (*key).cmp(&check.key));
            // Counted from 1, as SQL does. Every key is there.
            let place = found.map_or(0, |index| index + 1);
            let from = checks.len();
            checks.extend_from_slice(&check.numbers);
            checks[from + 1] = saturating(u64::try_from(place).unwrap_or(u64::MAX));
        }
        let (keys, families) = keys.into_iter().unzip();
        Self {
            keys,
            families,
            checks,
            together: questions.iter().any(|question| question.len() > 1),
        }
    }
}

/// The verdicts of each of `questions` from the answer to all of them.
pub(crate) fn verdicts(questions: &[&Question], answer: &[i64]) -> Result<Vec<Verdicts>, Failure> {
    let expected = 1 + ANSWER
        * questions
            .iter()
            .map(|question| question.len())
            .sum::<usize>();
    if answer.len() != expected {
        return Err(malformed_length(answer.len(), expected));
    }
    let now = Timestamp::saturating_from_micros(word(answer[0])?);
    let mut rest = &answer[1..];
    questions
        .iter()
        .map(|question| {
            let (words, behind) = rest.split_at(ANSWER * question.len());
            rest = behind;
            question.verdicts(now, words)
        })
        .collect()
}
