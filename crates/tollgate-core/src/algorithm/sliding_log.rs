//! Sliding log: every hit is remembered for one period, so that no window of that length ever holds more than `L`.

use std::collections::VecDeque;
use std::hash::{Hash, Hasher};

use crate::algorithm::{MAX_STORED, Op, Settlement, Verdict};
use crate::time::Timestamp;

/// Hits at one instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct LogEntry {
    /// When they were admitted.
    at: Timestamp,
    /// Units charged since the log began, up to and including this entry. It wraps: only differences count.
    total: u64,
}

/// The state of a sliding-log key: one entry per instant, oldest first, with running totals.
///
/// Totals make a hit's work independent of the limit: what is live is found by bisection and summed by subtraction.
/// Two logs are equal if their hits are.
#[derive(Clone, Debug, Default)]
pub struct SlidingLogState {
    entries: VecDeque<LogEntry>,
    /// The running total before the first entry.
    base: u64,
}

impl SlidingLogState {
    /// A log from instants and the units charged at each, oldest first.
    #[must_use]
    pub fn from_hits(hits: impl IntoIterator<Item = (Timestamp, u64)>) -> Self {
        let mut log = Self::default();
        for (at, units) in hits {
            log.push(at, units);
        }
        log
    }

    /// The instants and the units charged at each, oldest first.
    #[must_use]
    pub fn hits(&self) -> impl ExactSizeIterator<Item = (Timestamp, u64)> + '_ {
        let mut before = self.base;
        self.entries.iter().map(move |entry| {
            let units = entry.total.wrapping_sub(before);
            before = entry.total;
            (entry.at, units)
        })
    }

    /// The newest instant in the log.
    #[must_use]
    pub fn newest(&self) -> Option<Timestamp> {
        self.entries.back().map(|entry| entry.at)
    }

    fn total(&self) -> u64 {
        self.entries.back().map_or(self.base, |entry| entry.total)
    }

    /// Units charged in the first `count` entries and before.
    fn total_before(&self, count: usize) -> u64 {
        match count.checked_sub(1) {
            None => self.base,
            Some(last) => self.entries[last].total,
        }
    }

    fn push(&mut self, at: Timestamp, units: u64) {
        let total = self.total().wrapping_add(units);
        match self.entries.back_mut() {
            Some(last) if last.at == at => last.total = total,
            _ => self.entries.push_back(LogEntry { at, total }),
        }
    }

    /// Moves everything later than `now` to `now`.
    fn rewind(&mut self, now: Timestamp) {
        let kept = self.entries.partition_point(|entry| entry.at <= now);
        if kept == self.entries.len() {
            return;
        }
        let total = self.total();
        self.entries.truncate(kept);
        match self.entries.back_mut() {
            Some(last) if last.at == now => last.total = total,
            _ => self.entries.push_back(LogEntry { at: now, total }),
        }
    }

    fn drop_first(&mut self, count: usize) {
        self.base = self.total_before(count);
        self.entries.drain(..count);
        if self.entries.len() < self.entries.capacity() / 4 {
            self.entries.shrink_to(self.entries.len() * 2);
        }
    }

    /// Gives back up to `units` of what was charged at `at`.
    fn give_back(&mut self, at: Timestamp, units: u64) {
        let Ok(index) = self.entries.binary_search_by_key(&at, |entry| entry.at) else {
            return;
        };
        let before = self.total_before(index);
        let back = units.min(self.entries[index].total.wrapping_sub(before));
        for entry in self.entries.range_mut(index..) {
            entry.total = entry.total.wrapping_sub(back);
        }
        if self.entries[index].total == before {
            self.entries.remove(index);
        }
    }
}

impl PartialEq for SlidingLogState {
    fn eq(&self, other: &Self) -> bool {
        self.hits().eq(other.hits())
    }
}

impl Eq for SlidingLogState {}

impl Hash for SlidingLogState {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.hits().len().hash(state);
        self.hits().for_each(|hit| hit.hash(state));
    }
}

/// A sliding log's numbers, worked out once per policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SlidingLogRule {
    limit: u64,
    period: u64,
}

impl SlidingLogRule {
    pub(crate) const fn new(limit: u64, period: u64) -> Self {
        Self { limit, period }
    }

    /// The most one hit can take: `L`.
    #[must_use]
    pub const fn limit(&self) -> u64 {
        self.limit
    }

    /// Microseconds for which a hit counts: `P`.
    #[must_use]
    pub const fn period(&self) -> u64 {
        self.period
    }

    /// Judges `op` on `log` at `now`, and changes `log` where the algorithm says so.
    ///
    /// A hit takes amortised constant work plus a bisection, whatever the limit and the cost. Giving back takes work in
    /// proportion to the hits admitted since.
    pub fn step(&self, log: &mut SlidingLogState, now: Timestamp, op: Op) -> Verdict {
        match op {
            Op::Hit(cost) => {
                let allowed = self.admits(log, now, cost.get());
                if allowed {
                    self.advance(log, now);
                    log.push(now, cost.get());
                } else if log.newest().is_some_and(|newest| now < newest) {
                    self.advance(log, now);
                }
                self.verdict(log, now, cost.get(), allowed)
            }
            Op::Peek(cost) => self.verdict(log, now, cost.get(), self.admits(log, now, cost.get())),
            Op::Settle(settlement) => {
                self.settle(log, now, &settlement);
                self.verdict(log, now, settlement.charged.get(), true)
            }
        }
    }

    fn expired(&self, log: &SlidingLogState, now: Timestamp) -> usize {
        log.entries
            .partition_point(|entry| entry.at.as_micros() + self.period <= now.as_micros())
    }

    fn used(&self, log: &SlidingLogState, now: Timestamp) -> u64 {
        log.total()
            .wrapping_sub(log.total_before(self.expired(log, now)))
    }

    fn admits(&self, log: &SlidingLogState, now: Timestamp, cost: u64) -> bool {
        cost <= self.limit && self.used(log, now) <= self.limit - cost
    }

    /// Brings the log to `now`: nothing lies in the future, nothing expired is kept.
    pub(crate) fn advance(&self, log: &mut SlidingLogState, now: Timestamp) {
        log.rewind(now);
        let expired = self.expired(log, now);
        if expired > 0 {
            log.drop_first(expired);
        }
    }

    fn settle(&self, log: &mut SlidingLogState, now: Timestamp, settlement: &Settlement) {
        let charged = settlement.charged.get();
        if settlement.actual > charged {
            let room = MAX_STORED.saturating_sub(self.used(log, now));
            let extra = (settlement.actual - charged).min(room);
            if extra > 0 {
                self.advance(log, now);
                log.push(now, extra);
            }
        } else if settlement.actual < charged {
            log.give_back(settlement.charged_at, charged - settlement.actual);
        }
    }

    /// The verdict on a hit of `cost` over `log`, whether or not it has been charged to it.
    fn verdict(&self, log: &SlidingLogState, now: Timestamp, cost: u64, allowed: bool) -> Verdict {
        let used = self.used(log, now);
        let reset_at = now.as_micros() + self.reset_after(log, now);
        let retry_at = if allowed || cost > self.limit {
            0
        } else {
            self.retry_at(log, now, cost)
        };
        Verdict::sliding_log(allowed, used, retry_at, reset_at)
    }

    /// When an entry stops counting; one from the future counts as made now, which is what the next hit makes of it.
    fn expiry(&self, entry: Timestamp, now: Timestamp) -> u64 {
        entry.min(now).as_micros() + self.period
    }

    fn retry_at(&self, log: &SlidingLogState, now: Timestamp, cost: u64) -> u64 {
        let expired = self.expired(log, now);
        let before = log.total_before(expired);
        let room = self.limit - cost;
        let excess = log.total().wrapping_sub(before).saturating_sub(room);
        let freeing = log.entries.partition_point(|entry| {
            entry.at.as_micros() + self.period <= now.as_micros()
                || entry.total.wrapping_sub(before) < excess
        });
        log.entries
            .get(freeing)
            .map_or(0, |entry| self.expiry(entry.at, now))
    }

    /// Microseconds from `at` until a hit of `cost` fits; `None` if it never will.
    pub(crate) fn retry_after(&self, verdict: &Verdict, at: Timestamp, cost: u64) -> Option<u64> {
        (cost <= self.limit).then(|| verdict.retry_at().saturating_sub(at.as_micros()))
    }

    /// Microseconds from `now` until the log is empty.
    pub(crate) fn reset_after(&self, log: &SlidingLogState, now: Timestamp) -> u64 {
        log.newest().map_or(0, |newest| {
            self.expiry(newest, now).saturating_sub(now.as_micros())
        })
    }
}
