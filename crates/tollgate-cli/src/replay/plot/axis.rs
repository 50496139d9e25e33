//! Where the ticks of an axis stand and what they say.

use tollgate_core::Timestamp;

use super::super::report::to_jiff;

/// Most ticks of a time axis; their labels need the room.
const MAX_TICKS: u64 = 10;
const MILLISECOND: u64 = 1_000;
const SECOND: u64 = 1_000_000;
const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

/// Distances between ticks that people can count in.
const STEPS: [u64; 31] = [
    MILLISECOND,
    2 * MILLISECOND,
    5 * MILLISECOND,
    10 * MILLISECOND,
    20 * MILLISECOND,
    50 * MILLISECOND,
    100 * MILLISECOND,
    200 * MILLISECOND,
    500 * MILLISECOND,
    SECOND,
    2 * SECOND,
    5 * SECOND,
    10 * SECOND,
    15 * SECOND,
    30 * SECOND,
    MINUTE,
    2 * MINUTE,
    5 * MINUTE,
    10 * MINUTE,
    15 * MINUTE,
    30 * MINUTE,
    HOUR,
    2 * HOUR,
    3 * HOUR,
    6 * HOUR,
    12 * HOUR,
    DAY,
    2 * DAY,
    5 * DAY,
    10 * DAY,
    30 * DAY,
];

/// How times are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Clock {
    /// Dates and times of day, UTC.
    Calendar,
    /// Time since the start.
    SinceStart,
}

/// A tick of a time axis.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Tick {
    pub(super) micros: u64,
    pub(super) label: String,
    /// The date or year under the label, where it is another than at the tick before.
    pub(super) second_line: Option<String>,
}

/// Ticks at round times from `start` to `end`, microseconds since 1970.
pub(super) fn time_ticks(start: u64, end: u64, clock: Clock) -> Vec<Tick> {
    let step = step_for(end.saturating_sub(start));
    let mut ticks: Vec<Tick> = Vec::new();
    let mut context = None;
    let mut micros = start.div_ceil(step) * step;
    while micros <= end {
        let (label, second_line) = match clock {
            Clock::SinceStart => (since_start(micros, step), None),
            Clock::Calendar => calendar(micros, step),
        };
        let is_new = second_line != context;
        context.clone_from(&second_line);
        ticks.push(Tick {
            micros,
            label,
            second_line: second_line.filter(|_| is_new),
        });
        micros += step;
    }
    ticks
}

/// What a stretch of time is called after "per" or "each": `hour`, `5 minutes`.
pub(super) fn stretch(micros: u64) -> String {
    let units = [
        (DAY, "day"),
        (HOUR, "hour"),
        (MINUTE, "minute"),
        (SECOND, "second"),
    ];
    let (length, name) = units
        .into_iter()
        .find(|(length, _)| micros.is_multiple_of(*length))
        .unwrap_or((MILLISECOND, "ms"));
    match micros / length {
        1 => name.to_owned(),
        count if length == MILLISECOND => format!("{count} {name}"),
        count => format!("{count} {name}s"),
    }
}

/// The top of a value axis: a round number of at least `largest`, which can be halved unless it is 1.
pub(super) fn round_top(largest: u64) -> u64 {
    if largest <= 1 {
        return 1;
    }
    let small = [2, 4, 6, 8].into_iter().find(|top| *top >= largest);
    let mut decade: u64 = 1;
    while small.is_none() && decade.saturating_mul(80) < largest {
        decade = decade.saturating_mul(10);
    }
    let tops = [10, 12, 16, 20, 24, 30, 40, 50, 60, 80].map(|factor| decade.saturating_mul(factor));
    small
        .or_else(|| tops.into_iter().find(|top| *top >= largest))
        .unwrap_or(u64::MAX)
}

fn step_for(span: u64) -> u64 {
    if let Some(step) = STEPS.into_iter().find(|step| span / step < MAX_TICKS) {
        return step;
    }
    let mut step = 60 * DAY;
    while span / step >= MAX_TICKS {
        step *= 2;
    }
    step
}

fn since_start(micros: u64, step: u64) -> String {
    let units = [(DAY, "d"), (HOUR, "h"), (MINUTE, "min"), (SECOND, "s")];
    let (length, unit) = units
        .into_iter()
        .find(|(length, _)| step.is_multiple_of(*length))
        .unwrap_or((MILLISECOND, "ms"));
    format!("{} {unit}", micros / length)
}

fn calendar(micros: u64, step: u64) -> (String, Option<String>) {
    let time = to_jiff(Timestamp::saturating_from_micros(micros));
    let (label, second_line) = match step {
        _ if step >= DAY => ("%-d %b", "%Y"),
        _ if step >= MINUTE => ("%H:%M", "%-d %b %Y"),
        _ if step >= SECOND => ("%H:%M:%S", "%-d %b %Y"),
        _ => ("%H:%M:%S%.3f", "%-d %b %Y"),
    };
    (
        time.strftime(label).to_string(),
        Some(time.strftime(second_line).to_string()),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(ticks: &[Tick]) -> Vec<(&str, Option<&str>)> {
        ticks
            .iter()
            .map(|tick| (tick.label.as_str(), tick.second_line.as_deref()))
            .collect()
    }

    #[test]
    fn a_day_has_times_and_its_date_once() {
        let start = 1_431_864_000 * SECOND; // 2015-05-17 12:00
        let ticks = time_ticks(start, start + DAY, Clock::Calendar);
        let labels = shown(&ticks);
        assert_eq!(labels.first(), Some(&("12:00", Some("17 May 2015"))));
        assert_eq!(
            labels[1..4],
            [("15:00", None), ("18:00", None), ("21:00", None)]
        );
        assert_eq!(labels[4], ("00:00", Some("18 May 2015")));
    }

    #[test]
    fn long_times_have_days_and_their_year() {
        let start = 1_431_820_800 * SECOND; // 2015-05-17 00:00
        let ticks = time_ticks(start, start + 8 * DAY, Clock::Calendar);
        assert_eq!(
            shown(&ticks)[..2],
            [("17 May", Some("2015")), ("18 May", None)]
        );
    }

    #[test]
    fn patterns_count_from_their_start() {
        let ticks = time_ticks(0, 61 * SECOND, Clock::SinceStart);
        assert_eq!(
            shown(&ticks)[..3],
            [("0 s", None), ("10 s", None), ("20 s", None)]
        );
        let ticks = time_ticks(0, 5 * MILLISECOND, Clock::SinceStart);
        assert_eq!(ticks.last().unwrap().label, "5 ms");
    }

    #[test]
    fn there_are_never_too_many_ticks_nor_none() {
        for exponent in 3..16 {
            for factor in 1..10 {
                let span = factor * 10_u64.pow(exponent);
                let ticks = time_ticks(0, span, Clock::Calendar);
                assert!((2..=10).contains(&ticks.len()), "{span}: {}", ticks.len());
            }
        }
    }

    #[test]
    fn the_top_of_a_value_axis_is_round_and_not_below_the_largest() {
        let cases = [
            (0, 1),
            (1, 1),
            (3, 4),
            (9, 10),
            (10, 10),
            (61, 80),
            (81, 100),
            (136, 160),
            (1001, 1200),
            (u64::MAX, u64::MAX),
        ];
        for (largest, top) in cases {
            assert_eq!(round_top(largest), top);
        }
    }

    #[test]
    fn stretches_have_names() {
        let cases = [
            (HOUR, "hour"),
            (5 * MINUTE, "5 minutes"),
            (500 * MILLISECOND, "500 ms"),
            (2 * DAY, "2 days"),
        ];
        for (micros, name) in cases {
            assert_eq!(stretch(micros), name);
        }
    }
}
