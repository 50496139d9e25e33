//! What the script answers.

use redis::Value;
use tollgate_core::algorithm::{FixedWindowState, SlidingWindowState};
use tollgate_core::{Error, ErrorKind, Result, Timestamp, Verdict, Verdicts};

use crate::error::{Failure, STORE};
use crate::request::{self, Form, Question};

/// The answers of one call, read batch by batch.
///
/// A script that has answered has run: whatever cannot be read of its answer may well be charged.
#[derive(Debug)]
pub(crate) struct Reply {
    now: Timestamp,
    values: std::vec::IntoIter<Value>,
}

impl Reply {
    pub(crate) fn new(value: Value) -> Result<Self, Failure> {
        let Value::Array(values) = value else {
            return Err(Failure::Strange("it is not an array"));
        };
        let mut values = values.into_iter();
        let now = instant(integer(values.next().as_ref())?)?;
        Ok(Self { now, values })
    }

    /// The answer to the next batch, which asked `questions`.
    pub(crate) fn next(&mut self, questions: &[Question]) -> Result<Verdicts> {
        let at = if request::is_by_millisecond(questions) {
            whole_milliseconds(self.now)
        } else {
            self.now
        };
        if let [question] = questions {
            let verdict = self.verdict(question)?;
            return match verdict {
                Ok(verdict) => Ok(Verdicts::one(at, verdict)),
                Err(trouble) => Err(unreadable(&question.name, &trouble)),
            };
        }
        let mut verdicts = Vec::with_capacity(questions.len());
        let mut error = None;
        for question in questions {
            match self.verdict(question)? {
                Ok(verdict) => verdicts.push(verdict),
                Err(trouble) if trouble == NOT_TO_BLAME => {}
                Err(trouble) => {
                    error.get_or_insert_with(|| unreadable(&question.name, &trouble));
                }
            }
        }
        match error {
            None => Ok(Verdicts::many(at, verdicts.into_boxed_slice())),
            Some(error) => Err(error),
        }
    }

    /// The next check's verdict, or the word that stands in its place.
    fn verdict(&mut self, question: &Question) -> Result<Result<Verdict, String>, Failure> {
        let signed = match self.values.next() {
            Some(Value::BulkString(word)) => {
                return Ok(Err(String::from_utf8_lossy(&word).into_owned()));
            }
            value => integer(value.as_ref())?,
        };
        let allowed = signed > 0;
        let number = signed
            .unsigned_abs()
            .checked_sub(1)
            .ok_or_else(|| Failure::Strange("a verdict begins with zero"))?;
        Ok(Ok(match question.form {
            Form::Bucket => Verdict::bucket(allowed, number),
            Form::FixedWindow | Form::Counter => {
                let window = match integer(self.values.next().as_ref())? {
                    -1 => None,
                    start => Some(FixedWindowState {
                        start: instant(start)?,
                        count: number,
                    }),
                };
                Verdict::fixed_window(allowed, window)
            }
            Form::SlidingWindow => {
                let start = instant(integer(self.values.next().as_ref())?)?;
                let previous = natural(integer(self.values.next().as_ref())?)?;
                let windows = SlidingWindowState {
                    start,
                    count: number,
                    previous,
                };
                Verdict::sliding_window(allowed, windows)
            }
            Form::SlidingLog => {
                let retry_at = natural(integer(self.values.next().as_ref())?)?;
                let reset_at = natural(integer(self.values.next().as_ref())?)?;
                Verdict::sliding_log(allowed, number, retry_at, reset_at)
            }
        }))
    }
}

/// The last whole millisecond: how counters of the server's own see the clock.
pub(crate) const fn whole_milliseconds(instant: Timestamp) -> Timestamp {
    let micros = instant.as_micros();
    Timestamp::saturating_from_micros(micros - micros % 1000)
}

/// Stands for a check whose key is well, in a batch with one that is not.
const NOT_TO_BLAME: &str = "none";

/// The error for a key that holds something else than this library wrote.
pub(crate) fn unreadable(name: &[u8], trouble: &str) -> Error {
    let name = name.escape_ascii();
    let message = match trouble {
        "type" => format!(
            "the key \"{name}\" holds another type than a string, so another program wrote it; \
             delete or rename that key, or use another prefix"
        ),
        _ => format!(
            "the key \"{name}\" holds a string that this library did not write; \
             delete or rename that key, or use another prefix"
        ),
    };
    Error::new(ErrorKind::Corrupt, message).with_store(STORE)
}

fn integer(value: Option<&Value>) -> Result<i64, Failure> {
    match value {
        Some(Value::Int(number)) => Ok(*number),
        Some(_) => Err(Failure::Strange("an integer was expected and is not there")),
        None => Err(Failure::Strange("it is too short")),
    }
}

fn natural(number: i64) -> Result<u64, Failure> {
    u64::try_from(number).map_err(|_| Failure::Strange("a count is negative"))
}

fn instant(number: i64) -> Result<Timestamp, Failure> {
    Timestamp::from_micros(natural(number)?)
        .map_err(|_| Failure::Strange("an instant is out of range"))
}
