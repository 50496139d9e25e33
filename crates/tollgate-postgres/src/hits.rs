//! Hits on buckets: what most statements consist of, judged by functions of their own.

#[cfg(test)]
mod tests;

use std::cmp::Ordering;

use tollgate_core::{Timestamp, Verdict, Verdicts};

use crate::error::Failure;
use crate::question::{self, Question};

/// Numbers per key in the function's argument.
const STRIDE: usize = 6;

/// Hits on buckets; those on one key cost the same.
#[derive(Debug)]
pub(crate) struct Hits<'a> {
    pub(crate) keys: Vec<&'a [u8]>,
    /// The SQL file says what each is; the last of a key's is how often it is hit.
    pub(crate) numbers: Vec<i64>,
}

/// A single key's hits.
pub(crate) type One<'a> = (&'a [u8], [i64; STRIDE]);

impl<'a> Hits<'a> {
    /// `questions`, which ascend by their keys, as such hits, if they are nothing else.
    pub(crate) fn of(questions: &[&'a Question]) -> Option<Self> {
        let mut keys: Vec<&[u8]> = Vec::with_capacity(questions.len());
        let mut numbers: Vec<i64> = Vec::with_capacity(questions.len() * STRIDE);
        for question in questions {
            let (key, hit) = question.hit_on_a_bucket()?;
            match keys.last().map_or(Ordering::Less, |last| (*last).cmp(key)) {
                Ordering::Less => {
                    keys.push(key);
                    numbers.extend_from_slice(&hit);
                    numbers.push(1);
                }
                Ordering::Equal => {
                    let (times, last) = numbers.split_last_mut()?;
                    if !last.ends_with(&hit) {
                        return None;
                    }
                    *times += 1;
                }
                Ordering::Greater => return None,
            }
        }
        Some(Self { keys, numbers })
    }

    /// The only key, if there is just one.
    pub(crate) fn one(&self) -> Option<One<'a>> {
        match self.keys[..] {
            [key] => Some((key, *self.numbers.first_chunk()?)),
            _ => None,
        }
    }

    /// The verdicts, one for each hit, from the function's answer.
    pub(crate) fn verdicts(&self, answer: &[i64]) -> Result<Vec<Verdicts>, Failure> {
        let count = self.keys.len();
        if answer.len() != 1 + 2 * count {
            return Err(question::malformed_length(answer.len(), 1 + 2 * count));
        }
        let now = Timestamp::saturating_from_micros(question::word(answer[0])?);
        let (admitted, levels) = answer[1..].split_at(count);
        let (numbers, _) = self.numbers.as_chunks::<STRIDE>();
        let mut verdicts = Vec::new();
        for ((hit, admitted), level) in numbers.iter().zip(admitted).zip(levels) {
            let [_, unit, _, _, cost, times] = *hit;
            let mut level = question::word(*level)?;
            // What is admitted fits into the bucket, so no product of it leaves the range.
            let step = question::word(cost.saturating_mul(unit))?;
            for nth in 0..times {
                let allowed = nth < *admitted;
                if allowed {
                    level = level.saturating_add(step);
                }
                verdicts.push(Verdicts::one(now, Verdict::bucket(allowed, level)));
            }
        }
        Ok(verdicts)
    }
}
