//! Who may ask the store, decided on atomics; the tongue of the breaker is elsewhere.

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use parking_lot::Mutex;
use tollgate_core::Error;

use super::options::BreakerOptions;
use super::word::{BreakerState, Word};

/// What a call may do.
#[derive(Debug)]
pub(super) enum Entry {
    /// Ask the store.
    Through(Pass),
    /// Fail at once.
    Refused,
}

/// The right to ask the store, given back with what came of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pass {
    generation: u32,
    pub(super) is_probe: bool,
}

/// What the end of a call says about the store.
#[derive(Debug)]
pub(super) enum Evidence<'a> {
    /// It answers.
    Answers,
    /// It is down, as far as this call can tell.
    Down(&'a Error),
    /// It failed in a way that is no outage: not counted, but no proof either that an outage is over.
    Fails(&'a Error),
    /// Nothing.
    Nothing,
}

impl<'a> Evidence<'a> {
    pub(super) const fn error(&self) -> Option<&'a Error> {
        match self {
            Self::Down(error) | Self::Fails(error) => Some(error),
            Self::Answers | Self::Nothing => None,
        }
    }
}

/// A change of state, to be told once by whoever caused it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// An outage began; the first probe is due after this long.
    Opened(Duration),
    /// A probe is under way.
    Probing,
    /// A probe failed; the next one is due after this long.
    StillOpen(Duration),
    /// A probe was dropped before it said anything.
    ProbeLost,
    /// The outage is over; this many probes had failed.
    Closed(u32),
}

#[derive(Debug)]
pub(super) struct Gate {
    word: AtomicU64,
    /// Open: when the next probe is due. Half-open: when the present one is given up. Microseconds of the caller's clock.
    due: AtomicU64,
    options: BreakerOptions,
    /// Held by whoever changes the state, so that what is said of an outage fits it.
    outage: Mutex<Outage>,
}

/// What is said about the present outage.
#[derive(Debug)]
struct Outage {
    since: SystemTime,
    last_failure: String,
    refusal: Arc<str>,
}

impl Outage {
    fn fail(&mut self, error: &Error, wait: u64) {
        self.last_failure = in_words(error);
        self.refusal = self.refusal_until(Some(SystemTime::now() + Duration::from_micros(wait)));
    }

    /// Written once per change, for all the calls that are refused until the next one.
    fn refusal_until(&self, next_probe: Option<SystemTime>) -> Arc<str> {
        let probe = match next_probe {
            Some(next_probe) => format!("the next probe is at {}", date(next_probe)),
            None => "a probe is under way".to_owned(),
        };
        let (since, failure) = (date(self.since), &self.last_failure);
        let text = format!(
            "the breaker is open since {since}, {probe}; nothing was charged; the last failure: {failure}"
        );
        Arc::from(text)
    }
}

/// RFC 3339, to the millisecond; empty for a year that it cannot write, which is no reason to fail a call.
fn date(time: SystemTime) -> String {
    let mut text = String::new();
    if write!(text, "{}", humantime::format_rfc3339_millis(time)).is_err() {
        text.clear();
    }
    text
}

/// The error and what caused it, down to the root.
pub(super) fn in_words(error: &Error) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}

impl Gate {
    pub(super) fn new(options: BreakerOptions) -> Self {
        Self {
            word: AtomicU64::new(Word::CLOSED.pack()),
            due: AtomicU64::new(0),
            options,
            outage: Mutex::new(Outage {
                since: SystemTime::UNIX_EPOCH,
                last_failure: String::new(),
                refusal: Arc::from(""),
            }),
        }
    }

    pub(super) fn state(&self) -> BreakerState {
        self.load().state
    }

    /// The right to ask a store that is not known to be down.
    #[inline]
    pub(super) fn pass_if_closed(&self) -> Option<Pass> {
        let word = self.load();
        (word.state == BreakerState::Closed).then_some(Pass {
            generation: word.generation,
            is_probe: false,
        })
    }

    pub(super) fn is_probe_due(&self, now: u64) -> bool {
        now >= self.due.load(Ordering::Acquire)
    }

    /// The way in while the breaker is not closed.
    #[cold]
    pub(super) fn enter(&self, now: u64) -> (Entry, Option<Change>) {
        if !self.is_probe_due(now) {
            return (Entry::Refused, None);
        }
        let mut outage = self.outage.lock();
        if let Some(pass) = self.pass_if_closed() {
            return (Entry::Through(pass), None);
        }
        if !self.is_probe_due(now) {
            return (Entry::Refused, None);
        }
        let word = self.load();
        let probing = word.change(BreakerState::HalfOpen, word.count);
        self.due
            .store(now.saturating_add(self.options.lease()), Ordering::Release);
        outage.refusal = outage.refusal_until(None);
        self.word.store(probing.pack(), Ordering::Release);
        let pass = Pass {
            generation: probing.generation,
            is_probe: true,
        };
        (Entry::Through(pass), Some(Change::Probing))
    }

    /// Why a call is refused.
    pub(super) fn refusal(&self) -> String {
        let refusal = Arc::clone(&self.outage.lock().refusal);
        String::from(&*refusal)
    }

    /// Draws the conclusion from the end of a call.
    #[inline]
    pub(super) fn conclude(
        &self,
        pass: Pass,
        evidence: &Evidence<'_>,
        now: impl Fn() -> u64,
    ) -> Option<Change> {
        if pass.is_probe {
            return self.conclude_probe(pass, evidence, now());
        }
        match evidence {
            Evidence::Answers => {
                self.forget_failures(pass);
                None
            }
            Evidence::Down(error) => self.count_failure(pass, error, now()),
            Evidence::Fails(_) | Evidence::Nothing => None,
        }
    }

    #[inline]
    fn forget_failures(&self, pass: Pass) {
        let mut word = self.load();
        while word.count > 0 && word.is_closed_in(pass.generation) {
            match self.replace(word, word.count(0)) {
                Ok(()) => return,
                Err(present) => word = present,
            }
        }
    }

    #[cold]
    fn count_failure(&self, pass: Pass, error: &Error, now: u64) -> Option<Change> {
        loop {
            let word = self.load();
            if !word.is_closed_in(pass.generation) {
                return None;
            }
            let count = word.count.saturating_add(1);
            if count >= self.options.threshold() {
                if let Some(change) = self.open(word, error, now) {
                    return Some(change);
                }
            } else if self.replace(word, word.count(count)).is_ok() {
                return None;
            }
        }
    }

    /// Opens, unless `closed` is not the present any more.
    fn open(&self, closed: Word, error: &Error, now: u64) -> Option<Change> {
        let mut outage = self.outage.lock();
        if self.load() != closed {
            return None;
        }
        let wait = self.options.wait(0);
        // Nobody reads these while the breaker is closed, so it does no harm should a success still come in between.
        self.due.store(now.saturating_add(wait), Ordering::Release);
        outage.since = SystemTime::now();
        outage.fail(error, wait);
        self.replace(closed, closed.change(BreakerState::Open, 0))
            .ok()?;
        Some(Change::Opened(Duration::from_micros(wait)))
    }

    #[cold]
    fn conclude_probe(&self, pass: Pass, evidence: &Evidence<'_>, now: u64) -> Option<Change> {
        let mut outage = self.outage.lock();
        let word = self.load();
        if word.generation != pass.generation {
            // It was given up on, and another took its place.
            return None;
        }
        let (after, change) = match evidence {
            Evidence::Answers => (
                word.change(BreakerState::Closed, 0),
                Change::Closed(word.count),
            ),
            Evidence::Down(error) | Evidence::Fails(error) => {
                let failed = word.count.saturating_add(1);
                let wait = self.options.wait(failed);
                self.due.store(now.saturating_add(wait), Ordering::Release);
                outage.fail(error, wait);
                (
                    word.change(BreakerState::Open, failed),
                    Change::StillOpen(Duration::from_micros(wait)),
                )
            }
            Evidence::Nothing => {
                self.due.store(now, Ordering::Release);
                outage.refusal = outage.refusal_until(Some(SystemTime::now()));
                (
                    word.change(BreakerState::Open, word.count),
                    Change::ProbeLost,
                )
            }
        };
        self.word.store(after.pack(), Ordering::Release);
        Some(change)
    }

    #[inline]
    fn load(&self) -> Word {
        Word::unpack(self.word.load(Ordering::Acquire))
    }

    fn replace(&self, old: Word, new: Word) -> Result<(), Word> {
        self.word
            .compare_exchange(old.pack(), new.pack(), Ordering::AcqRel, Ordering::Acquire)
            .map(drop)
            .map_err(Word::unpack)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::sync::atomic::AtomicBool;

    use tollgate_core::ErrorKind;

    use super::*;

    const THREADS: usize = 4;
    const ROUNDS: u64 = 300;

    fn gate(failures: u32) -> Gate {
        let (first, longest) = (Duration::from_millis(1), Duration::from_secs(1));
        Gate::new(
            BreakerOptions::new()
                .failures(failures)
                .backoff(first, longest),
        )
    }

    fn down() -> Error {
        Error::new(ErrorKind::Unavailable, "gone")
    }

    /// What `act` answers on several threads that begin at one instant.
    fn at_once<T: Send>(act: impl Fn() -> T + Sync) -> Vec<T> {
        let barrier = Barrier::new(THREADS);
        let begin = || {
            barrier.wait();
            act()
        };
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(begin)).collect();
            let ends = threads.into_iter().map(|thread| thread.join());
            ends.map(|end| end.unwrap()).collect()
        })
    }

    #[test]
    fn of_threads_that_fail_at_once_one_opens() {
        for round in 0..ROUNDS {
            let gate = gate(u32::try_from(THREADS).unwrap());
            let pass = gate.pass_if_closed().unwrap();
            let changes = at_once(|| gate.conclude(pass, &Evidence::Down(&down()), || round));
            assert_eq!(changes.iter().flatten().count(), 1, "round {round}");
            assert_eq!(gate.state(), BreakerState::Open);
        }
    }

    #[test]
    fn of_threads_that_come_when_a_probe_is_due_one_is_the_probe() {
        let gate = gate(1);
        let pass = gate.pass_if_closed().unwrap();
        gate.conclude(pass, &Evidence::Down(&down()), || 0);
        for round in 1..=ROUNDS {
            let now = round * 2_000_000;
            let entries = at_once(|| gate.enter(now));
            let mut probes = entries.iter().filter_map(|(entry, change)| match entry {
                Entry::Through(pass) => Some((*pass, *change)),
                Entry::Refused => None,
            });
            let (probe, change) = probes.next().unwrap();
            assert!(probe.is_probe && change == Some(Change::Probing));
            assert!(probes.next().is_none(), "round {round}");
            let evidence = down();
            let evidence = if round % 2 == 0 {
                Evidence::Down(&evidence)
            } else {
                Evidence::Nothing
            };
            gate.conclude(probe, &evidence, || now);
            assert_eq!(gate.state(), BreakerState::Open);
        }
    }

    #[test]
    fn threads_that_come_while_a_probe_is_answered_are_let_through_or_refused_but_never_probe() {
        for round in 0..ROUNDS {
            let gate = gate(1);
            let pass = gate.pass_if_closed().unwrap();
            gate.conclude(pass, &Evidence::Down(&down()), || 0);
            let (Entry::Through(probe), _) = gate.enter(1_000) else {
                panic!("the probe was due");
            };
            let is_taken = AtomicBool::new(false);
            at_once(|| {
                if !is_taken.swap(true, Ordering::SeqCst) {
                    let change = gate.conclude(probe, &Evidence::Answers, || 1_001);
                    assert_eq!(change, Some(Change::Closed(0)));
                } else if let (Entry::Through(pass), _) = gate.enter(1_002) {
                    assert!(!pass.is_probe, "round {round}");
                }
            });
            assert_eq!(gate.state(), BreakerState::Closed);
        }
    }

    #[test]
    fn failures_among_answers_are_counted_from_the_last_answer() {
        let gate = gate(3);
        let fail = || {
            let pass = gate.pass_if_closed().unwrap();
            gate.conclude(pass, &Evidence::Down(&down()), || 0)
        };
        let answer = || {
            let pass = gate.pass_if_closed().unwrap();
            gate.conclude(pass, &Evidence::Answers, || 0)
        };
        assert_eq!([fail(), fail(), answer(), fail(), fail()], [None; 5]);
        assert!(matches!(fail(), Some(Change::Opened(_))));
    }
}
