//! Times as vectors write them: `0`, `90s`, `-1us`, `9s 999999us`.

use serde::Deserialize;
use serde::de::Error as _;

/// Units, largest first, in microseconds.
const UNITS: [(&str, i64); 6] = [
    ("d", 86_400_000_000),
    ("h", 3_600_000_000),
    ("m", 60_000_000),
    ("s", 1_000_000),
    ("ms", 1_000),
    ("us", 1),
];

/// Microseconds from the start of a vector, or between two instants of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Offset(pub(crate) i64);

impl Offset {
    /// Reads a sum of whole numbers with a unit, largest unit first; a minus sign in front makes all of it negative.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let refuse =
            |why: &str| format!("{text:?} is not a time such as \"1m 30s\" or \"0\": {why}");
        let (sign, sum) = match text.strip_prefix('-') {
            Some(sum) => (-1, sum),
            None => (1, text),
        };
        if sum == "0" {
            return Ok(Self(0));
        }
        let mut total: i64 = 0;
        let mut allowed = &UNITS[..];
        for term in sum.split(' ') {
            let digits = term.len() - term.trim_start_matches(|c: char| c.is_ascii_digit()).len();
            let (count, unit) = term.split_at(digits);
            let count: i64 = count
                .parse()
                .map_err(|_| refuse("every term begins with a whole number"))?;
            let index = allowed
                .iter()
                .position(|(name, _)| *name == unit)
                .ok_or_else(|| refuse("units are d, h, m, s, ms and us, largest first"))?;
            let micros = count.checked_mul(allowed[index].1);
            total = micros
                .and_then(|micros| total.checked_add(micros))
                .ok_or_else(|| refuse("it is too long"))?;
            allowed = &allowed[index + 1..];
        }
        Ok(Self(sign * total))
    }

    /// A span between two instants, which is never negative.
    pub(crate) fn span(self) -> Option<std::time::Duration> {
        u64::try_from(self.0)
            .ok()
            .map(std::time::Duration::from_micros)
    }
}

impl<'de> Deserialize<'de> for Offset {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<str>::deserialize(deserializer)?;
        Self::parse(&text).map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_of_units_are_read() {
        for (text, micros) in [
            ("0", 0),
            ("1us", 1),
            ("-1us", -1),
            ("9s 999999us", 9_999_999),
            ("1d 2h 3m 4s 5ms 6us", 93_784_005_006),
            ("-1m 30s", -90_000_000),
        ] {
            assert_eq!(Offset::parse(text), Ok(Offset(micros)), "{text}");
        }
    }

    #[test]
    fn anything_else_is_refused() {
        for text in [
            "",
            "1",
            "s",
            "1.5s",
            "1s 1m",
            "1s 1s",
            "1s  1ms",
            "+1s",
            "1 s",
            "1y",
            "9999999999999d",
        ] {
            assert!(Offset::parse(text).is_err(), "{text:?} should be refused");
        }
    }
}
