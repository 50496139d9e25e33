//! Times as logs write them, read into whole microseconds; finer digits are cut off.

use clap::ValueEnum;
use jiff::civil;
use jiff::tz::Offset;
use tollgate_core::Timestamp;

use super::Reason;

const MONTHS: [&[u8; 3]; 12] = [
    b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec",
];

/// What one step of a number that stands for a time is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum EpochUnit {
    /// Seconds since 1970
    S,
    /// Milliseconds since 1970
    Ms,
    /// Microseconds since 1970
    Us,
    /// Nanoseconds since 1970
    Ns,
}

impl EpochUnit {
    /// The unit in which `number` lies between 1970 and the year 5138.
    fn of_magnitude(number: u64) -> Self {
        match number {
            0..100_000_000_000 => Self::S,
            100_000_000_000..100_000_000_000_000 => Self::Ms,
            100_000_000_000_000..100_000_000_000_000_000 => Self::Us,
            _ => Self::Ns,
        }
    }

    /// Decimal places between this unit and nanoseconds.
    fn places_to_nanos(self) -> u32 {
        match self {
            Self::S => 9,
            Self::Ms => 6,
            Self::Us => 3,
            Self::Ns => 0,
        }
    }
}

/// Reads the time field of JSON lines.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TimeReader {
    unit: Option<EpochUnit>,
}

impl TimeReader {
    /// Numbers count in `unit`; if it is `None`, the first number's size decides for the whole log.
    pub(crate) fn new(unit: Option<EpochUnit>) -> Self {
        Self { unit }
    }

    /// Reads a number since 1970, RFC 3339, or the common log format's time.
    pub(crate) fn read(&mut self, text: &str) -> Result<Timestamp, Reason> {
        let bytes = text.as_bytes();
        if bytes
            .iter()
            .all(|byte| byte.is_ascii_digit() || *byte == b'.')
        {
            return self.read_number(text);
        }
        if bytes.get(2) == Some(&b'/') {
            return parse_clf(bytes);
        }
        parse_rfc3339(text)
    }

    fn read_number(&mut self, text: &str) -> Result<Timestamp, Reason> {
        let unreadable =
            || format!("time {text:?} is not a number of at most 19 digits before the point");
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        if fraction.contains('.') {
            return Err(unreadable().into());
        }
        let number: u64 = whole.parse().map_err(|_| unreadable())?;
        let unit = *self
            .unit
            .get_or_insert_with(|| EpochUnit::of_magnitude(number));
        let mut nanos = u128::from(number);
        let mut digits = fraction.bytes();
        for _ in 0..unit.places_to_nanos() {
            let digit = digits.next().map_or(0, |digit| digit - b'0');
            nanos = nanos * 10 + u128::from(digit);
        }
        from_micros(nanos / 1000)
    }
}

/// Reads `17/May/2015:10:05:03 +0000`, the time of Apache's common log format (`%t` without its brackets).
///
/// Decimals after the seconds are read, and a leap second counts as the second before it.
pub(crate) fn parse_clf(text: &[u8]) -> Result<Timestamp, Reason> {
    clf_micros(text).map_or_else(
        || {
            Err(Reason::from(
                "the time is not like 17/May/2015:10:05:03 +0000",
            ))
        },
        from_micros,
    )
}

fn clf_micros(text: &[u8]) -> Option<u128> {
    let (date_and_time, rest) = text.split_at_checked(20)?;
    for (position, separator) in [(2, b'/'), (6, b'/'), (11, b':'), (14, b':'), (17, b':')] {
        if date_and_time[position] != separator {
            return None;
        }
    }
    let month = MONTHS
        .iter()
        .position(|name| name[..] == date_and_time[3..6])?
        + 1;
    let second = two_digits(&date_and_time[18..20])?;
    let local = civil::DateTime::new(
        i16::from(two_digits(&date_and_time[7..9])?) * 100
            + i16::from(two_digits(&date_and_time[9..11])?),
        i8::try_from(month).ok()?,
        two_digits(&date_and_time[0..2])?,
        two_digits(&date_and_time[12..14])?,
        two_digits(&date_and_time[15..17])?,
        if second == 60 { 59 } else { second },
        0,
    )
    .ok()?;
    let (fraction, zone) = rest.split_at_checked(rest.len().checked_sub(6)?)?;
    let whole = offset(zone)?.to_timestamp(local).ok()?.as_microsecond();
    u128::try_from(whole)
        .ok()?
        .checked_add(fraction_micros(fraction)?)
}

fn two_digits(text: &[u8]) -> Option<i8> {
    let [tens @ b'0'..=b'9', ones @ b'0'..=b'9'] = text else {
        return None;
    };
    i8::try_from((tens - b'0') * 10 + (ones - b'0')).ok()
}

fn offset(zone: &[u8]) -> Option<Offset> {
    let sign = match zone.get(..2)? {
        b" +" => 1,
        b" -" => -1,
        _ => return None,
    };
    let hours = i32::from(two_digits(zone.get(2..4)?)?);
    let minutes = i32::from(two_digits(zone.get(4..6)?)?);
    Offset::from_seconds(sign * (hours * 3600 + minutes * 60)).ok()
}

fn fraction_micros(fraction: &[u8]) -> Option<u128> {
    if fraction.is_empty() {
        return Some(0);
    }
    let digits = fraction.strip_prefix(b".")?;
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let padded = digits.iter().copied().chain(std::iter::repeat(b'0'));
    Some(
        padded
            .take(6)
            .fold(0, |micros, digit| micros * 10 + u128::from(digit - b'0')),
    )
}

fn parse_rfc3339(text: &str) -> Result<Timestamp, Reason> {
    let instant: jiff::Timestamp = text.parse().map_err(|_| {
        format!(
            "time {text:?} is neither a number since 1970 nor like 2015-05-17T10:05:03+00:00 \
             nor like 17/May/2015:10:05:03 +0000"
        )
    })?;
    // `as_nanosecond` of an instant before 1970 is negative and refused below.
    let nanos = u128::try_from(instant.as_nanosecond()).map_err(|_| out_of_range())?;
    from_micros(nanos / 1000)
}

fn from_micros(micros: u128) -> Result<Timestamp, Reason> {
    u64::try_from(micros)
        .ok()
        .and_then(|micros| Timestamp::from_micros(micros).ok())
        .ok_or_else(out_of_range)
}

fn out_of_range() -> Reason {
    Reason::from("the time lies outside of 1970 to 2223")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<u64, Reason> {
        TimeReader::new(None).read(text).map(Timestamp::as_micros)
    }

    #[test]
    fn the_spellings_of_one_instant_agree() {
        let spellings = [
            "17/May/2015:10:05:03 +0000",
            "17/May/2015:12:35:03 +0230",
            "16/May/2015:23:05:03 -1100",
            "2015-05-17T10:05:03Z",
            "2015-05-17T10:05:03+00:00",
            "2015-05-17T12:05:03.000+02:00",
            "2015-05-17 10:05:03Z",
            "1431857103",
            "1431857103.000",
            "1431857103000",
            "1431857103000000",
            "1431857103000000000",
        ];
        for spelling in spellings {
            assert_eq!(read(spelling), Ok(1_431_857_103_000_000), "{spelling}");
        }
    }

    #[test]
    fn decimals_are_exact_to_the_microsecond_and_finer_ones_are_cut_off() {
        let cases = [
            ("1431857103.1", 100_000),
            ("1431857103.100001", 100_001),
            ("1431857103.1000019", 100_001),
            ("1431857103.999999999999", 999_999),
            ("1431857103000.5", 500),
            ("1431857103000000.9", 0),
            ("1431857103000000999", 0),
            ("2015-05-17T10:05:03.1000019Z", 100_001),
            ("17/May/2015:10:05:03.1000019 +0000", 100_001),
            ("17/May/2015:10:05:03.5 +0000", 500_000),
        ];
        for (text, micros) in cases {
            assert_eq!(read(text), Ok(1_431_857_103_000_000 + micros), "{text}");
        }
    }

    #[test]
    fn a_named_unit_overrules_the_size_of_the_number() {
        let mut reader = TimeReader::new(Some(EpochUnit::Ms));
        assert_eq!(reader.read("61000").unwrap().as_micros(), 61_000_000);
    }

    #[test]
    fn the_first_number_settles_the_unit() {
        let mut reader = TimeReader::new(None);
        assert_eq!(reader.read("99999999999.5").unwrap_err(), out_of_range());
        assert_eq!(reader.read("100000000000").unwrap_err(), out_of_range());
        assert_eq!(reader.read("59").unwrap().as_micros(), 59_000_000);
    }

    #[test]
    fn a_leap_second_counts_as_the_second_before_it() {
        assert_eq!(
            read("30/Jun/2015:23:59:60 +0000"),
            read("30/Jun/2015:23:59:59 +0000")
        );
    }

    #[test]
    fn what_is_no_instant_is_refused() {
        let refused = [
            "",
            ".",
            "1.2.3",
            "-1",
            "1e9",
            "99999999999999999999",
            "2015-05-17T10:05:03",
            "1969-12-31T23:59:59Z",
            "2300-01-01T00:00:00Z",
            "31/Dec/1969:23:59:59 +0000",
            "30/Feb/2015:10:05:03 +0000",
            "17/Mai/2015:10:05:03 +0000",
            "17/May/2015:10:05:61 +0000",
            "17/May/2015:24:05:03 +0000",
            "17/May/2015:10:05:03",
            "17/May/2015:10:05:03 0000",
            "17/May/2015:10:05:03. +0000",
            "17/May/2015:10:05:03 +9900",
            "17/May/2015 10:05:03 +0000",
            "yesterday",
        ];
        for text in refused {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
