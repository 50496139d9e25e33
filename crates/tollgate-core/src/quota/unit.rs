//! The units of time a quota can be written in.

/// A unit of fixed length.
#[derive(Debug)]
pub(super) struct Unit {
    /// The canonical spelling of one.
    pub(super) singular: &'static str,
    /// The canonical spelling of several.
    pub(super) plural: &'static str,
    pub(super) millis: u64,
    /// What else is read as this unit.
    abbreviations: &'static [&'static str],
}

/// Every unit, longest first.
pub(super) const UNITS: [Unit; 6] = [
    Unit {
        singular: "week",
        plural: "weeks",
        millis: 7 * 86_400_000,
        abbreviations: &["w"],
    },
    Unit {
        singular: "day",
        plural: "days",
        millis: 86_400_000,
        abbreviations: &["d"],
    },
    Unit {
        singular: "hour",
        plural: "hours",
        millis: 3_600_000,
        abbreviations: &["h", "hr", "hrs"],
    },
    Unit {
        singular: "minute",
        plural: "minutes",
        millis: 60_000,
        abbreviations: &["m", "min", "mins"],
    },
    Unit {
        singular: "second",
        plural: "seconds",
        millis: 1_000,
        abbreviations: &["s", "sec", "secs"],
    },
    Unit {
        singular: "ms",
        plural: "ms",
        millis: 1,
        abbreviations: &["millisecond", "milliseconds"],
    },
];

/// What a word in the place of a unit means.
#[derive(Debug)]
pub(super) enum UnitWord {
    Known(&'static Unit),
    Month,
    Year,
    FinerThanMillisecond,
    Unknown,
}

impl UnitWord {
    /// Reads `word` in any case of the ASCII letters.
    pub(super) fn read(word: &str) -> Self {
        let is_one_of = |words: &[&str]| words.iter().any(|known| word.eq_ignore_ascii_case(known));
        let known = UNITS
            .iter()
            .find(|unit| is_one_of(&[unit.singular, unit.plural]) || is_one_of(unit.abbreviations));
        if let Some(unit) = known {
            return Self::Known(unit);
        }
        if is_one_of(&["month", "months", "mo", "mos"]) {
            return Self::Month;
        }
        if is_one_of(&["year", "years", "y", "yr", "yrs"]) {
            return Self::Year;
        }
        // Both micro signs: the one from Latin-1 and the Greek letter.
        if is_one_of(&["us", "\u{b5}s", "\u{3bc}s", "microsecond", "microseconds"])
            || is_one_of(&["ns", "nanosecond", "nanoseconds"])
        {
            return Self::FinerThanMillisecond;
        }
        Self::Unknown
    }
}
