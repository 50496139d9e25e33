//! The stricter of two states: what a shared overflow cell holds.
//!
//! A state is at least as strict as another if a key that goes on from it is never admitted where the other would have
//! denied it, whatever comes. Here both states belong to keys of one space, so they are of one kind; the quotas behind
//! them may differ, since a quota may change and tiers may share a policy's name.

use tollgate_core::algorithm::{
    BucketState, FixedWindowState, MAX_STORED, SlidingLogState, SlidingWindowState,
};
use tollgate_core::{Rule, State, Timestamp};

use crate::pace::Pace;

/// The most instants that the log in a shared cell tells apart.
const MAX_LOG: usize = 32;

/// The stricter of two states of one space, at `now` or later.
pub(crate) fn stricter(a: (State, Pace), b: (State, Pace), now: Timestamp) -> (State, Pace) {
    match (a, b) {
        ((State::Bucket(a), a_pace), (State::Bucket(b), b_pace)) => {
            let (bucket, pace) = bucket((a, a_pace), (b, b_pace));
            (State::Bucket(bucket), pace)
        }
        ((State::FixedWindow(a), a_pace), (State::FixedWindow(b), b_pace)) => {
            let window = FixedWindowState {
                start: a.start.max(b.start),
                count: a.count.max(b.count),
            };
            (State::FixedWindow(window), slower(a_pace, b_pace))
        }
        ((State::SlidingWindow(a), a_pace), (State::SlidingWindow(b), b_pace)) => {
            let a = restarted(a, a_pace.period(), now);
            let b = restarted(b, b_pace.period(), now);
            let windows = SlidingWindowState {
                start: now,
                count: a.count.max(b.count),
                previous: a.previous.max(b.previous),
            };
            (State::SlidingWindow(windows), slower(a_pace, b_pace))
        }
        ((State::SlidingLog(a), a_pace), (State::SlidingLog(b), b_pace)) => {
            let log = SlidingLogState::from_hits(log(&a, &b));
            (State::SlidingLog(Box::new(log)), slower(a_pace, b_pace))
        }
        // One space holds states of one kind only.
        (a, _) => a,
    }
}

/// What a key without a state of its own goes on from, if it may be one of those that `state` stands for.
///
/// A window begins anew at `now`, with what counts: whoever was never seen must not gain by a window that began before
/// its first hit.
pub(crate) fn handed_on(state: &State, rule: &Rule, now: Timestamp) -> State {
    match (state, rule) {
        (State::FixedWindow(window), Rule::FixedWindow(rule)) if rule.phase().is_none() => {
            let end = window.start.as_micros().saturating_add(rule.period());
            let count = if now.as_micros() < end {
                window.count
            } else {
                0
            };
            State::FixedWindow(FixedWindowState { start: now, count })
        }
        (State::SlidingWindow(windows), Rule::SlidingWindow(rule)) => {
            State::SlidingWindow(restarted(*windows, rule.period(), now))
        }
        _ => state.clone(),
    }
}

/// Windows that begin at `now` and count at least what `windows` count, now and later.
///
/// What is left of the previous window fades over a whole period from now, which is slower than it would have.
fn restarted(windows: SlidingWindowState, period: u64, now: Timestamp) -> SlidingWindowState {
    let gone = now.as_micros().saturating_sub(windows.start.as_micros());
    let weight = |units: u64, gone: u64| {
        let left = period.saturating_sub(gone);
        let product = u128::from(units) * u128::from(left);
        u64::try_from(product.div_ceil(u128::from(period.max(1)))).unwrap_or(units)
    };
    let (count, previous) = if gone < period {
        (windows.count, weight(windows.previous, gone))
    } else {
        (0, weight(windows.count, gone - period))
    };
    SlidingWindowState {
        start: now,
        count,
        previous,
    }
}

/// Of two periods the longer: what counts under the shorter one counts at least as long under it.
fn slower(a: Pace, b: Pace) -> Pace {
    if a.period() >= b.period() { a } else { b }
}

/// Of two levels that drain alike, the one that is higher once both are known is so ever after. Of others, the higher one
/// at the later instant is above both, in the weights and at the pace of the one that is empty last.
fn bucket(a: (BucketState, Pace), b: (BucketState, Pace)) -> (BucketState, Pace) {
    let updated = a.0.updated.max(b.0.updated);
    if a.1 == b.1 && a.0.unit == b.0.unit {
        let level = |of: (BucketState, Pace)| of.1.level_at(&of.0, updated.as_micros());
        return if level(a) >= level(b) { a } else { b };
    }
    let expiry = |of: (BucketState, Pace)| of.1.expiry(&State::Bucket(of.0));
    let (last, first) = if expiry(a) >= expiry(b) {
        (a, b)
    } else {
        (b, a)
    };
    let units = first.0.level.div_ceil(first.0.unit.max(1));
    let level = last.0.level.max(units.saturating_mul(last.0.unit));
    let merged = BucketState {
        updated,
        level: level.min(MAX_STORED),
        unit: last.0.unit,
    };
    (merged, last.1)
}

/// For every instant the sum of what was charged then or later, and of the two logs the higher: each log's live sum is
/// at most that of the result, whatever the period.
fn log(a: &SlidingLogState, b: &SlidingLogState) -> Vec<(Timestamp, u64)> {
    let (mut a, mut b) = (sums(a), sums(b));
    let mut newest_first: Vec<(Timestamp, u64)> = Vec::with_capacity(a.len() + b.len());
    let (mut of_a, mut of_b) = (0, 0);
    while let Some(at) = a.last().max(b.last()).map(|(at, _)| *at) {
        if let Some((_, sum)) = a.pop_if(|(instant, _)| *instant == at) {
            of_a = sum;
        }
        if let Some((_, sum)) = b.pop_if(|(instant, _)| *instant == at) {
            of_b = sum;
        }
        newest_first.push((at, of_a.max(of_b)));
    }
    let group = newest_first.len().div_ceil(MAX_LOG).max(1);
    let mut before = 0;
    let mut hits: Vec<(Timestamp, u64)> = newest_first
        .chunks(group)
        .map(|chunk| {
            // The newest instant of the group stands for all of it: it can only count longer.
            let sum = chunk[chunk.len() - 1].1;
            let units = sum - before;
            before = sum;
            (chunk[0].0, units)
        })
        .filter(|(_, units)| *units > 0)
        .collect();
    hits.reverse();
    hits
}

/// The instants of a log, oldest first, each with the sum of what was charged then or later.
fn sums(log: &SlidingLogState) -> Vec<(Timestamp, u64)> {
    let mut hits: Vec<(Timestamp, u64)> = log.hits().collect();
    let mut sum = 0;
    for (_, units) in hits.iter_mut().rev() {
        sum += *units;
        *units = sum;
    }
    hits
}
