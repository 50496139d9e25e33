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
    /// How many hits each answer that is still to come stands for.
    times: std::vec::IntoIter<u16>,
    /// The answer that was read last, if it stands for more hits.
    repeated: Option<Repeated>,
}

/// One answer for hits that asked the same of one key, one after the other.
#[derive(Debug)]
struct Repeated {
    answer: Result<Numbers, String>,
    /// How many more hits it stands for.
    left: u16,
    /// How many of these are admitted: the first ones.
    admitted: u16,
}

/// What the script says of one check.
#[derive(Clone, Copy, Debug)]
struct Numbers {
    form: Form,
    allowed: bool,
    first: u64,
    others: [i64; 2],
}

impl Reply {
    /// `times` says how many hits each answer stands for.
    pub(crate) fn new(value: Value, times: Vec<u16>) -> Result<Self, Failure> {
        let Value::Array(values) = value else {
            return Err(Failure::Strange("it is not an array"));
        };
        let mut values = values.into_iter();
        let now = instant(integer(values.next().as_ref())?)?;
        Ok(Self {
            now,
            values,
            times: times.into_iter(),
            repeated: None,
        })
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
        let answer = match self.repeated.take() {
            Some(repeated) => self.repeat(repeated, question),
            None => self.read(question)?,
        };
        answer.map_or_else(|word| Ok(Err(word)), |numbers| numbers.verdict().map(Ok))
    }

    fn repeat(&mut self, mut repeated: Repeated, question: &Question) -> Result<Numbers, String> {
        if let Ok(numbers) = &mut repeated.answer {
            numbers.allowed = repeated.admitted > 0;
            if numbers.allowed {
                numbers.first = numbers.first.saturating_add(question.step);
            }
        }
        self.go_on(
            repeated.answer,
            repeated.left - 1,
            repeated.admitted.saturating_sub(1),
        )
    }

    /// Keeps an answer that stands for more hits.
    fn go_on(
        &mut self,
        answer: Result<Numbers, String>,
        left: u16,
        admitted: u16,
    ) -> Result<Numbers, String> {
        if left > 0 {
            let answer = answer.clone();
            self.repeated = Some(Repeated {
                answer,
                left,
                admitted,
            });
        }
        answer
    }

    /// The next answer, or the word in its place.
    fn read(&mut self, question: &Question) -> Result<Result<Numbers, String>, Failure> {
        let form = question.form;
        let times = self.times.next().unwrap_or(1);
        let signed = match self.values.next() {
            Some(Value::BulkString(word)) => {
                let word = String::from_utf8_lossy(&word).into_owned();
                return Ok(self.go_on(Err(word), times - 1, 0));
            }
            value => integer(value.as_ref())?,
        };
        let first = signed.unsigned_abs().checked_sub(1);
        let mut numbers = Numbers {
            form,
            allowed: signed > 0,
            first: first.ok_or_else(|| Failure::Strange("a verdict begins with zero"))?,
            others: [0; 2],
        };
        for other in &mut numbers.others[..form.others()] {
            *other = integer(self.values.next().as_ref())?;
        }
        let mut admitted = 0;
        if times > 1 {
            let fit = integer(self.values.next().as_ref())?;
            admitted = u16::try_from(fit)
                .ok()
                .filter(|fit| *fit <= times && (*fit > 0) == numbers.allowed)
                .ok_or_else(|| Failure::Strange("it admits more hits than there are"))?;
        }
        Ok(self.go_on(Ok(numbers), times - 1, admitted.saturating_sub(1)))
    }
}

impl Numbers {
    fn verdict(self) -> Result<Verdict, Failure> {
        let Self { allowed, first, .. } = self;
        let [second, third] = self.others;
        Ok(match self.form {
            Form::Bucket => Verdict::bucket(allowed, first),
            Form::FixedWindow | Form::Counter if second == -1 => {
                Verdict::fixed_window(allowed, None)
            }
            Form::FixedWindow | Form::Counter => {
                let window = FixedWindowState {
                    start: instant(second)?,
                    count: first,
                };
                Verdict::fixed_window(allowed, Some(window))
            }
            Form::SlidingWindow => {
                let windows = SlidingWindowState {
                    start: instant(second)?,
                    count: first,
                    previous: natural(third)?,
                };
                Verdict::sliding_window(allowed, windows)
            }
            Form::SlidingLog => {
                Verdict::sliding_log(allowed, first, natural(second)?, natural(third)?)
            }
        })
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
