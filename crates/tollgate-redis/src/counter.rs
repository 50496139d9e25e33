//! Fixed windows counted by the server's own INCREX (Redis 8.8 and later): cheaper than a script.
//!
//! ```text
//! INCREX key BYINT cost UBOUND limit PX period - 1 ENX    counts if it fits: [count, counted]
//! PEXPIRETIME key                                         when the window ends, less one millisecond
//! TIME                                                    the clock
//! ```
//!
//! all in one trip. INCREX alone judges and charges; the other two only tell when its window ends. A window that ends
//! between them is reported as in its last millisecond.
//!
//! The expiry *is* the window here, so the clock ticks in milliseconds. A read finds a key gone from the millisecond after
//! its expiry on: so a window is one period long. The server's background expiry may remove the key in the millisecond of
//! its expiry already; then the window was one millisecond shorter.

use std::collections::HashMap;

use redis::{Cmd, Pipeline, Value};
use tollgate_core::algorithm::FixedWindowState;
use tollgate_core::{Error, Result, Source, Timestamp, Verdict, Verdicts};

use crate::connection::Connection;
use crate::error::Failure;
use crate::reply;
use crate::request::Count;

/// Hits of one call, in their order.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    keys: Vec<Key>,
    places: HashMap<Box<[u8]>, usize>,
    /// For each hit, its key and its place among the key's hits.
    hits: Vec<(usize, usize)>,
}

/// How often equal hits are counted together before each is counted alone, which always settles it.
const TOGETHER: usize = 3;

/// The counters' clock ticks in milliseconds: so many microseconds.
const TICK: u64 = 1000;

const SHORT: Failure = Failure::Strange("a pipeline has too few answers");

impl Tally {
    /// About how many microseconds it keeps the server busy.
    pub(crate) fn weight(&self) -> u32 {
        const KEY: usize = 4;
        u32::try_from(self.keys.len() * KEY + self.hits.len()).unwrap_or(u32::MAX)
    }

    pub(crate) fn push(&mut self, name: &[u8], hit: Count) {
        let place = self.places.get(name).copied().unwrap_or_else(|| {
            self.places.insert(name.into(), self.keys.len());
            self.keys.push(Key::new(name));
            self.keys.len() - 1
        });
        let hits = &mut self.keys[place].hits;
        self.hits.push((place, hits.len()));
        hits.push(hit);
    }

    /// Counts all hits; the answers come in their order.
    pub(crate) async fn count(mut self, connection: &Connection) -> Result<Counted, Failure> {
        let mut now = Timestamp::EPOCH;
        for round in 0.. {
            let together = round < TOGETHER;
            let pipeline = self.pipeline(together);
            if pipeline.is_empty() {
                break;
            }
            let answers = connection.query_all(&pipeline).await;
            match answers.and_then(|answers| self.read(answers, together)) {
                Ok(instant) => now = instant,
                Err(failure) if round == 0 && self.keys.iter().any(Key::is_counted) => {
                    return Err(failure.after_charge());
                }
                Err(failure) if round == 0 => return Err(failure),
                Err(failure) => {
                    self.leave_open(&failure);
                    break;
                }
            }
        }
        // All hits have their answers by now. Should it fail, the next hit finds the counter as this one did.
        let _ = self.repair(connection).await;
        Ok(Counted { tally: self, now })
    }

    /// What is not answered yet has failed; what is answered was counted, or found no room.
    fn leave_open(&mut self, failure: &Failure) {
        for key in self.keys.iter_mut().filter(|key| !key.is_done()) {
            key.trouble = Some(Trouble::Other(failure.clone()));
        }
    }

    /// The commands for what is not answered yet; none if everything is.
    fn pipeline(&self, together: bool) -> Pipeline {
        let mut pipeline = redis::pipe();
        for key in self.keys.iter().filter(|key| !key.is_done()) {
            for (hit, times) in key.runs(together) {
                pipeline.add_command(key.increase(hit, times));
            }
            pipeline.cmd("PEXPIRETIME").arg(&key.name[..]);
        }
        if !pipeline.is_empty() {
            pipeline.cmd("TIME").ignore_errors();
        }
        pipeline
    }

    fn read(&mut self, answers: Vec<Value>, together: bool) -> Result<Timestamp, Failure> {
        let mut answers = answers.into_iter();
        for key in self.keys.iter_mut().filter(|key| !key.is_done()) {
            let runs = key.runs(together);
            let only = runs.len() == 1;
            for (hit, times) in runs {
                key.read(hit, times, only, answers.next().ok_or(SHORT)?)?;
            }
            key.read_end(answers.next().ok_or(SHORT)?)?;
        }
        clock(&answers.next().ok_or(SHORT)?)
    }

    /// Gives every counter that would never end an end, one period from now.
    async fn repair(&self, connection: &Connection) -> Result<(), Failure> {
        let mut pipeline = redis::pipe();
        for key in self.keys.iter().filter(|key| key.end == End::Never) {
            let period = key.hits.first().map_or(1, |hit| hit.period - 1);
            pipeline
                .cmd("PEXPIRE")
                .arg(&key.name[..])
                .arg(period)
                .arg("NX");
        }
        if !pipeline.is_empty() {
            pipeline.ignore_errors();
            connection.query_all(&pipeline).await?;
        }
        Ok(())
    }
}

/// The answers to all hits of one call.
#[derive(Debug)]
pub(crate) struct Counted {
    tally: Tally,
    now: Timestamp,
}

impl Counted {
    /// Whether the server refused to count at all: then it may not be the server that was asked for its abilities.
    pub(crate) fn is_refused(&self) -> bool {
        let mut troubles = self
            .tally
            .keys
            .iter()
            .filter_map(|key| key.trouble.as_ref());
        troubles.any(|trouble| matches!(trouble, Trouble::Other(_)))
    }

    /// The answer to the hit that was pushed as the `index`th.
    pub(crate) fn verdicts(&self, index: usize) -> Result<Verdicts> {
        let (place, index) = self.tally.hits[index];
        let key = &self.tally.keys[place];
        let Some(&Answer { allowed, count }) = key.answers.get(index) else {
            let trouble = key.trouble.clone();
            return Err(trouble
                .unwrap_or(Trouble::Other(SHORT))
                .into_error(&key.name));
        };
        let period = key.hits[index].period * TICK;
        let now = self.now.as_micros();
        let (now, start) = match key.end {
            End::At(end) => (now.min(end - TICK), Some(end.saturating_sub(period))),
            // The window ended right after it was counted in, or found full.
            End::Gone if count > 0 => (now, Some((now + TICK).saturating_sub(period))),
            End::Gone => (now, None),
            End::Never => (now, Some(now)),
        };
        let window = start.map(|start| FixedWindowState {
            start: Timestamp::saturating_from_micros(start),
            count,
        });
        let verdict = Verdict::fixed_window(allowed, window);
        let at = Timestamp::saturating_from_micros(now);
        Ok(Verdicts::one(at, verdict).with_source(Source::NativeCounter))
    }
}

#[derive(Debug)]
struct Key {
    name: Box<[u8]>,
    hits: Vec<Count>,
    /// The answers to the first of the hits.
    answers: Vec<Answer>,
    /// How many of the open hits are known to have room.
    fitting: u64,
    end: End,
    trouble: Option<Trouble>,
}

#[derive(Clone, Copy, Debug)]
struct Answer {
    allowed: bool,
    count: u64,
}

/// When a counter's window ends, in microseconds since the epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    At(u64),
    /// There is no such key.
    Gone,
    /// The key has lost its expiry.
    Never,
}

impl End {
    fn read(answer: &Value) -> Result<Self, Failure> {
        match answer {
            Value::Int(-2) => Ok(Self::Gone),
            Value::Int(-1) => Ok(Self::Never),
            Value::Int(expiry) => u64::try_from(*expiry)
                .map(|expiry| Self::At(expiry.saturating_add(1).saturating_mul(TICK)))
                .map_err(|_| Failure::Strange("an expiry is negative")),
            _ => Err(Failure::Strange("an expiry is no number")),
        }
    }
}

/// Why a key cannot be counted in.
#[derive(Clone, Debug)]
enum Trouble {
    Type,
    Value,
    Other(Failure),
}

impl Trouble {
    fn into_error(self, name: &[u8]) -> Error {
        match self {
            Self::Type => reply::unreadable(name, "type"),
            Self::Value => reply::unreadable(name, "value"),
            Self::Other(failure) => failure.into(),
        }
    }
}

impl Key {
    fn new(name: &[u8]) -> Self {
        Self {
            name: name.into(),
            hits: Vec::new(),
            answers: Vec::new(),
            fitting: u64::MAX,
            end: End::Gone,
            trouble: None,
        }
    }

    fn is_done(&self) -> bool {
        self.trouble.is_some() || self.answers.len() == self.hits.len()
    }

    /// Whether any of the hits was counted.
    fn is_counted(&self) -> bool {
        let charged =
            |trouble: &Trouble| matches!(trouble, Trouble::Other(Failure::AfterCharge(_)));
        self.answers.iter().any(|answer| answer.allowed) || self.trouble.iter().any(charged)
    }

    /// The hits that are not answered yet. Equal ones are counted together, unless others stand among them: a run that
    /// fits only in part is asked again, and what follows it must not overtake it.
    fn runs(&self, together: bool) -> Vec<(Count, u64)> {
        let open = &self.hits[self.answers.len()..];
        match open {
            [first, ..] if together && open.iter().all(|hit| hit == first) => {
                let all = u64::try_from(open.len()).unwrap_or(u64::MAX);
                vec![(*first, all.min(self.fitting))]
            }
            _ => open.iter().map(|hit| (*hit, 1)).collect(),
        }
    }

    fn increase(&self, hit: Count, times: u64) -> Cmd {
        let mut command = redis::cmd("INCREX");
        command.arg(&self.name[..]);
        command.arg("BYINT").arg(hit.cost.saturating_mul(times));
        command.arg("UBOUND").arg(hit.limit);
        command.arg("PX").arg(hit.period - 1).arg("ENX");
        command
    }

    /// Reads when the window ends. Who may count but not ask for that learns that the user lacks a permission.
    fn read_end(&mut self, answer: Value) -> Result<(), Failure> {
        if let Value::ServerError(error) = answer {
            let failure = Failure::Command(error.into());
            if self.is_counted() {
                self.trouble = Some(Trouble::Other(failure.after_charge()));
            } else {
                self.trouble.get_or_insert(Trouble::Other(failure));
            }
            self.answers.clear();
            return Ok(());
        }
        self.end = End::read(&answer)?;
        Ok(())
    }

    /// Reads the answer to a run: the count, and how much of it is new. `only` says that no other run was sent with it.
    fn read(&mut self, hit: Count, times: u64, only: bool, answer: Value) -> Result<(), Failure> {
        let (count, added) = match answer {
            Value::Array(pair) => match pair[..] {
                [Value::Int(count), Value::Int(added)] => {
                    // A count below zero is another program's doing; it leaves more room, never less.
                    (u64::try_from(count).unwrap_or(0), added)
                }
                _ => return Err(Failure::Strange("INCREX was not answered with two numbers")),
            },
            Value::ServerError(error) => {
                self.trouble.get_or_insert(match error.code() {
                    "WRONGTYPE" => Trouble::Type,
                    _ if error
                        .details()
                        .is_some_and(|why| why.contains("not an integer")) =>
                    {
                        Trouble::Value
                    }
                    _ => Trouble::Other(Failure::Command(error.into())),
                });
                return Ok(());
            }
            _ => return Err(Failure::Strange("INCREX was not answered with two numbers")),
        };
        let admitted = added > 0;
        if admitted {
            let before = count.saturating_sub(hit.cost.saturating_mul(times));
            self.answers.extend((1..=times).map(|nth| Answer {
                allowed: true,
                count: before + hit.cost * nth,
            }));
        }
        self.fitting = hit.limit.saturating_sub(count) / hit.cost;
        let open = self.hits.len() - self.answers.len();
        let denied = match (admitted, times) {
            // Full: whatever is open asks the same, and finds no room either.
            (_, _) if only && self.fitting == 0 => open,
            (false, 1) => 1,
            // What is open is asked again.
            _ => 0,
        };
        let answer = Answer {
            allowed: false,
            count,
        };
        self.answers.extend(std::iter::repeat_n(answer, denied));
        Ok(())
    }
}

fn clock(answer: &Value) -> Result<Timestamp, Failure> {
    const STRANGE: Failure = Failure::Strange("TIME was not answered with a time");
    let parts = match answer {
        Value::Array(parts) => parts,
        Value::ServerError(error) => return Err(Failure::Command(error.clone().into())),
        _ => return Err(STRANGE),
    };
    let number = |part: Option<&Value>| match part {
        Some(Value::BulkString(text)) => std::str::from_utf8(text).ok()?.parse::<u64>().ok(),
        _ => None,
    };
    let seconds = number(parts.first()).ok_or(STRANGE)?;
    let micros = number(parts.get(1)).ok_or(STRANGE)?;
    let micros = seconds.saturating_mul(1_000_000).saturating_add(micros);
    Ok(reply::whole_milliseconds(
        Timestamp::saturating_from_micros(micros),
    ))
}

#[cfg(test)]
mod tests;
