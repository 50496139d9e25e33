//! Quotas in configuration files: a text, or a map of its parts.

use std::fmt;
use std::time::Duration;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Unexpected, Visitor};
use serde::ser::{Serialize, Serializer};

use super::parse::parse_period;
use super::{ParseQuotaError, Quota, QuotaError, QuotaList};

/// Writes the canonical text. Needs the feature `serde`.
impl Serialize for Quota {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Reads a text such as `"100/minute"`, or a map with `limit`, `period` and, where wanted, `burst`. Needs
/// the feature `serde`.
///
/// `limit` and `burst` are whole numbers. `period` is a text such as `"minute"` or `"15 seconds"`; a bare
/// number is refused, because nothing says whether it counts seconds or milliseconds. Unknown and repeated
/// fields are refused. A format that is not self-describing holds the text.
///
/// # Examples
///
/// ```
/// use tollgate_core::Quota;
///
/// let text: Quota = serde_json::from_str(r#""20/s burst 100""#)?;
/// let map: Quota = serde_json::from_str(r#"{"limit": 20, "period": "second", "burst": 100}"#)?;
/// assert_eq!(text, map);
/// assert_eq!(serde_json::to_string(&map)?, r#""20/second burst 100""#);
/// # Ok::<(), serde_json::Error>(())
/// ```
impl<'de> Deserialize<'de> for Quota {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if deserializer.is_human_readable() {
            deserializer.deserialize_any(QuotaVisitor)
        } else {
            deserializer.deserialize_str(QuotaVisitor)
        }
    }
}

/// Writes the canonical text. Needs the feature `serde`.
impl Serialize for QuotaList {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Reads a text such as `"10/second; 1000/hour"`, or a sequence of quotas, each a text or a map. Needs the
/// feature `serde`.
///
/// # Examples
///
/// ```
/// use tollgate_core::QuotaList;
///
/// let text: QuotaList = serde_json::from_str(r#""10/second; 1000/hour""#)?;
/// let sequence: QuotaList =
///     serde_json::from_str(r#"["10/second", {"limit": 1000, "period": "hour"}]"#)?;
/// assert_eq!(text, sequence);
/// # Ok::<(), serde_json::Error>(())
/// ```
impl<'de> Deserialize<'de> for QuotaList {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if deserializer.is_human_readable() {
            deserializer.deserialize_any(QuotaListVisitor)
        } else {
            deserializer.deserialize_str(QuotaListVisitor)
        }
    }
}

struct QuotaVisitor;

impl<'de> Visitor<'de> for QuotaVisitor {
    type Value = Quota;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a quota such as \"100/minute\", or a map with limit, period and burst")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Quota, E> {
        text.parse().map_err(|error| in_text("quota", &error))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Quota, A::Error> {
        let fields = Fields::deserialize(MapAccessDeserializer::new(map))?;
        fields.quota().map_err(A::Error::custom)
    }
}

struct QuotaListVisitor;

impl<'de> Visitor<'de> for QuotaListVisitor {
    type Value = QuotaList;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("quotas such as \"10/second; 1000/hour\", or a sequence of quotas")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<QuotaList, E> {
        text.parse().map_err(|error| in_text("quotas", &error))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<QuotaList, A::Error> {
        let mut quotas = Vec::new();
        while let Some(quota) = sequence.next_element()? {
            quotas.push(quota);
        }
        QuotaList::try_from(quotas).map_err(A::Error::custom)
    }
}

/// Shows the text beside the error: a file's error names a column too, and it is another one.
fn in_text<E: Error>(what: &str, error: &ParseQuotaError) -> E {
    E::custom(format_args!("{what} {:?}: {error}", error.excerpt()))
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Fields {
    limit: Units,
    period: Period,
    burst: Option<Units>,
}

impl Fields {
    fn quota(&self) -> Result<Quota, QuotaError> {
        match &self.burst {
            Some(burst) => Quota::new_with_burst(self.limit.0, self.period.0, burst.0),
            None => Quota::new(self.limit.0, self.period.0),
        }
    }
}

/// A whole number, refused in words of this crate rather than of its integer type.
struct Units(u64);

impl<'de> Deserialize<'de> for Units {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_u64(UnitsVisitor)
    }
}

struct UnitsVisitor;

impl Visitor<'_> for UnitsVisitor {
    type Value = Units;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a whole number from 0 to 1000000000000")
    }

    fn visit_u64<E: Error>(self, units: u64) -> Result<Units, E> {
        Ok(Units(units))
    }

    fn visit_i64<E: Error>(self, units: i64) -> Result<Units, E> {
        match u64::try_from(units) {
            Ok(units) => Ok(Units(units)),
            Err(_) => Err(E::invalid_value(Unexpected::Signed(units), &self)),
        }
    }
}

struct Period(Duration);

impl<'de> Deserialize<'de> for Period {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(PeriodVisitor)
    }
}

struct PeriodVisitor;

impl Visitor<'_> for PeriodVisitor {
    type Value = Period;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a period with its unit, such as \"60s\" or \"15 minutes\"")
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Period, E> {
        Err(E::custom(format_args!(
            "period {number} has no unit; expected a text such as \"{number}s\""
        )))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Period, E> {
        match u64::try_from(number) {
            Ok(number) => self.visit_u64(number),
            Err(_) => Err(E::invalid_type(Unexpected::Signed(number), &self)),
        }
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Period, E> {
        match parse_period(text) {
            Ok(period) => Ok(Period(period)),
            Err(error) => Err(in_text("period", &error)),
        }
    }
}
