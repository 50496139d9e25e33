//! Times as the vectors write them: `0`, `90s`, `9s 999999us`, `-1s`.

use std::fmt;

use serde::Deserialize;

const UNITS: [(&str, u64); 6] = [
    ("d", 86_400_000_000),
    ("h", 3_600_000_000),
    ("m", 60_000_000),
    ("s", 1_000_000),
    ("ms", 1_000),
    ("us", 1),
];

#[derive(Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct Micros(pub(crate) u64);

impl TryFrom<String> for Micros {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        if text == "0" {
            return Ok(Self(0));
        }
        let mut units = UNITS.iter();
        let mut sum = 0;
        for part in text.split(' ') {
            let letters = part.trim_start_matches(|next: char| next.is_ascii_digit());
            let count: u64 = part[..part.len() - letters.len()]
                .parse()
                .map_err(|error| format!("{part:?} in {text:?}: {error}"))?;
            let (_, micros) = units
                .find(|(name, _)| *name == letters)
                .ok_or_else(|| format!("{letters:?} in {text:?} is no unit, or stands too late"))?;
            sum += count * micros;
        }
        Ok(Self(sum))
    }
}

impl fmt::Debug for Micros {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.0;
        let parts = UNITS.map(|(name, micros)| {
            let count = rest / micros;
            rest %= micros;
            if count == 0 {
                String::new()
            } else {
                format!("{count}{name} ")
            }
        });
        f.pad(parts.concat().trim_end())
    }
}

/// `start` moved by a time that may have a minus sign in front.
pub(crate) fn moved(start: u64, by: &str) -> u64 {
    let micros = |text: &str| Micros::try_from(text.to_owned()).expect("a legal time").0;
    match by.strip_prefix('-') {
        Some(back) => start - micros(back),
        None => start + micros(by),
    }
}
