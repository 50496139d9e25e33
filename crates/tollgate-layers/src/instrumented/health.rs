//! Whether the store answers: when trouble begins and ends, told once each.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use quanta::Instant;
use tollgate_core::ErrorKind;

/// The state of one store as its callers see it.
///
/// While all is well, a good answer costs one relaxed load.
#[derive(Debug, Default)]
pub(super) struct Health {
    troubled: AtomicBool,
    trouble: Mutex<Option<Trouble>>,
}

/// From the first failure on until the store has answered steadily for a while.
#[derive(Debug, Default)]
struct Trouble {
    outage: Option<Outage>,
    reported: Vec<ErrorKind>,
    /// The first good answer since the last failure.
    good_since: Option<Instant>,
}

#[derive(Debug)]
struct Outage {
    began: Instant,
    answers: u64,
}

/// What a failure brings up for the first time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct News {
    /// An outage begins.
    pub(super) outage: bool,
    /// An error of this kind, which does not pass by itself, is the first of its kind.
    pub(super) permanent: bool,
}

/// An outage that is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Recovery {
    /// From the first degraded answer to the first good one after the last.
    pub(super) lasted: Duration,
    /// How many answers were degraded.
    pub(super) answers: u64,
}

impl Health {
    /// Notes a call that the store did not answer: because of `kind` if it said so, and whether that left a degraded
    /// answer.
    #[cold]
    pub(super) fn failed(&self, kind: Option<ErrorKind>, degraded: bool, now: Instant) -> News {
        let permanent = kind.filter(|kind| !kind.is_transient() && !kind.is_callers_fault());
        if !degraded && permanent.is_none() {
            return News::default();
        }
        let mut slot = self.trouble.lock();
        let trouble = slot.get_or_insert_default();
        trouble.good_since = None;
        self.troubled.store(true, Ordering::Relaxed);
        News {
            outage: degraded && trouble.degrade(now),
            permanent: permanent.is_some_and(|kind| trouble.report(kind)),
        }
    }

    /// Notes an answer of the store itself. The trouble is over if there was no other for `steady`.
    #[inline]
    pub(super) fn answered(
        &self,
        steady: Duration,
        now: impl FnOnce() -> Instant,
    ) -> Option<Recovery> {
        if !self.troubled.load(Ordering::Relaxed) {
            return None;
        }
        self.answered_in_trouble(steady, now())
    }

    #[cold]
    fn answered_in_trouble(&self, steady: Duration, now: Instant) -> Option<Recovery> {
        let mut slot = self.trouble.lock();
        let trouble = slot.as_mut()?;
        let good_since = *trouble.good_since.get_or_insert(now);
        if now.saturating_duration_since(good_since) < steady {
            return None;
        }
        self.troubled.store(false, Ordering::Relaxed);
        let outage = slot.take()?.outage?;
        Some(Recovery {
            lasted: good_since.saturating_duration_since(outage.began),
            answers: outage.answers,
        })
    }
}

impl Trouble {
    /// Counts a degraded answer; whether it is the first.
    fn degrade(&mut self, now: Instant) -> bool {
        let outage = self.outage.get_or_insert(Outage {
            began: now,
            answers: 0,
        });
        outage.answers += 1;
        outage.answers == 1
    }

    /// Whether an error of this `kind` is the first.
    fn report(&mut self, kind: ErrorKind) -> bool {
        if self.reported.contains(&kind) {
            return false;
        }
        self.reported.push(kind);
        true
    }
}
