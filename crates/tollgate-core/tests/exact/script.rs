//! Random sequences of calls: how the time moves, what is asked, and for how much.
//!
//! Steps are drawn in terms of the policy and of the last answer (a tenth of the period on, a microsecond before the
//! retry time, one unit more than remains), so that most of them land where something changes.

use proptest::collection::vec;
use proptest::prelude::*;
use tollgate_core::{Policy, Timestamp};

use crate::subject::Answer;

/// Where the clock goes before a call.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Move {
    Stay,
    Micros(u64),
    /// On by a share of the time that one unit takes, in hundredths.
    UnitShare(u64),
    /// On by a share of the period, in hundredths.
    PeriodShare(u64),
    /// On by whole periods, and a microsecond less or more.
    Periods(u64, i8),
    /// To the last answer's retry time, or a microsecond before or after.
    Retry(i8),
    /// To the last answer's reset time, or a microsecond before or after.
    Reset(i8),
    /// Back by a share of the period, in hundredths.
    Back(u64),
    /// Anywhere.
    To(u64),
}

impl Move {
    /// The time after the move.
    pub(crate) fn from(self, now: Timestamp, policy: &Policy, last: Option<&Answer>) -> Timestamp {
        let period = policy.quota().period_micros();
        let now = now.as_micros();
        let moved = match self {
            Self::Stay => now,
            Self::Micros(micros) => now + micros,
            Self::UnitShare(hundredths) => {
                now + (period / policy.quota().limit().max(1)).saturating_mul(hundredths) / 100
            }
            Self::PeriodShare(hundredths) => now + period / 100 * hundredths,
            Self::Periods(periods, nudge) => nudged(now + period * periods, nudge),
            Self::Retry(nudge) => {
                let wait = last.and_then(|answer| answer.retry_after).unwrap_or(0);
                nudged(now.saturating_add(wait), nudge).max(now)
            }
            Self::Reset(nudge) => {
                let wait = last.map_or(0, |answer| answer.reset_after);
                nudged(now.saturating_add(wait), nudge).max(now)
            }
            Self::Back(hundredths) => now.saturating_sub(period / 100 * hundredths),
            Self::To(micros) => micros,
        };
        Timestamp::saturating_from_micros(moved)
    }
}

fn nudged(micros: u64, nudge: i8) -> u64 {
    micros.saturating_add_signed(nudge.into())
}

/// How many units are asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Units {
    Few(u64),
    /// A share of what fits at once, in sixteenths.
    Share(u64),
    /// What fits at once, or a little more or less.
    Capacity(i8),
    /// What remains, or a little more or less.
    Remaining(i8),
    Any(u64),
}

impl Units {
    pub(crate) fn count(self, capacity: u64, remaining: u64) -> u64 {
        match self {
            Self::Few(units) => units,
            Self::Share(sixteenths) => (capacity / 16).saturating_mul(sixteenths).max(1),
            Self::Capacity(nudge) => nudged(capacity, nudge).max(1),
            Self::Remaining(nudge) => nudged(remaining, nudge).max(1),
            Self::Any(units) => units.max(1),
        }
    }
}

/// What a charge turns out to have cost.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Actual {
    Nothing,
    /// A share of the charge, in sixteenths: more than sixteen is more than was charged.
    Share(u64),
    Most,
}

impl Actual {
    pub(crate) fn of(self, charged: u64) -> u64 {
        match self {
            Self::Nothing => 0,
            Self::Share(sixteenths) => {
                let share = u128::from(charged) * u128::from(sixteenths) / 16;
                u64::try_from(share).unwrap_or(u64::MAX)
            }
            Self::Most => u64::MAX,
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Action {
    Hit(Units),
    Peek(Units),
    /// Settles one of the charges that are still open.
    Settle(usize, Actual),
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    pub(crate) moves: Move,
    pub(crate) action: Action,
}

impl Step {
    pub(crate) fn hit(moves: Move, units: u64) -> Self {
        Self {
            moves,
            action: Action::Hit(Units::Any(units)),
        }
    }
}

pub(crate) fn forwards() -> impl Strategy<Value = Move> {
    prop_oneof![
        5 => Just(Move::Stay),
        2 => (1..=3_u64).prop_map(Move::Micros),
        3 => (1..=250_u64).prop_map(Move::UnitShare),
        3 => (1..=120_u64).prop_map(Move::PeriodShare),
        2 => (1..=3_u64, -1..=1_i8).prop_map(|(periods, nudge)| Move::Periods(periods, nudge)),
        4 => (-1..=1_i8).prop_map(Move::Retry),
        2 => (-1..=1_i8).prop_map(Move::Reset),
    ]
}

pub(crate) fn anywhere() -> impl Strategy<Value = Move> {
    let far = prop_oneof![
        Just(0),
        0..=Timestamp::MAX.as_micros(),
        Just(Timestamp::MAX.as_micros())
    ];
    prop_oneof![
        16 => forwards(),
        3 => (1..=250_u64).prop_map(Move::Back),
        1 => far.prop_map(Move::To),
    ]
}

pub(crate) fn units() -> impl Strategy<Value = Units> {
    prop_oneof![
        4 => (1..=4_u64).prop_map(Units::Few),
        4 => (1..=17_u64).prop_map(Units::Share),
        2 => (-2..=2_i8).prop_map(Units::Capacity),
        4 => (-1..=1_i8).prop_map(Units::Remaining),
        1 => prop_oneof![any::<u64>(), Just(u64::MAX)].prop_map(Units::Any),
    ]
}

pub(crate) fn actuals() -> impl Strategy<Value = Actual> {
    prop_oneof![
        2 => Just(Actual::Nothing),
        6 => (1..=48_u64).prop_map(Actual::Share),
        1 => Just(Actual::Most),
    ]
}

pub(crate) fn actions() -> impl Strategy<Value = Action> {
    prop_oneof![
        7 => units().prop_map(Action::Hit),
        2 => units().prop_map(Action::Peek),
        2 => (any::<usize>(), actuals()).prop_map(|(charge, actual)| Action::Settle(charge, actual)),
    ]
}

/// A starting time and steps.
pub(crate) fn scripts(
    moves: impl Strategy<Value = Move>,
    actions: impl Strategy<Value = Action>,
    length: usize,
) -> impl Strategy<Value = (Timestamp, Vec<Step>)> {
    let step = (moves, actions).prop_map(|(moves, action)| Step { moves, action });
    (starts(), vec(step, 1..=length))
}

/// A starting time and hits of so many units.
pub(crate) fn timed_units(
    moves: impl Strategy<Value = Move>,
    length: usize,
) -> impl Strategy<Value = (Timestamp, Vec<(Move, Units)>)> {
    (starts(), vec((moves, units()), 1..=length))
}

/// Mostly within this century, also at both ends of the range.
pub(crate) fn starts() -> impl Strategy<Value = Timestamp> {
    prop_oneof![
        6 => 1_000_000_000_000_000..=4_000_000_000_000_000_u64,
        1 => 0..=1_000_000_u64,
        1 => (0..=50_000_000_000_000_u64).prop_map(|before| Timestamp::MAX.as_micros() - before),
    ]
    .prop_map(Timestamp::saturating_from_micros)
}
