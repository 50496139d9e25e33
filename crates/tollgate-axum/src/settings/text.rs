//! Reading what stands in a file as text or as a list of texts.

use std::fmt;
use std::str::FromStr;

use serde::Deserializer;
use serde::de::{Error, SeqAccess, Visitor};

/// Reads a text by its `FromStr`; `expected` says what it holds.
pub(super) fn parsed<'de, T, D>(deserializer: D, expected: &'static str) -> Result<T, D::Error>
where
    T: FromStr<Err: fmt::Display>,
    D: Deserializer<'de>,
{
    deserializer.deserialize_str(TextOrList {
        expected,
        parse: |text: &str| text.parse(),
        collect: None::<fn(Vec<String>) -> Result<T, T::Err>>,
    })
}

/// Reads a text by its `FromStr`, or a list of texts by `collect`.
pub(super) fn parsed_or_listed<'de, T, D>(
    deserializer: D,
    expected: &'static str,
    collect: fn(Vec<String>) -> Result<T, T::Err>,
) -> Result<T, D::Error>
where
    T: FromStr<Err: fmt::Display>,
    D: Deserializer<'de>,
{
    deserializer.deserialize_any(TextOrList {
        expected,
        parse: |text: &str| text.parse(),
        collect: Some(collect),
    })
}

struct TextOrList<P, C> {
    expected: &'static str,
    parse: P,
    collect: Option<C>,
}

impl<'de, T, E, P, C> Visitor<'de> for TextOrList<P, C>
where
    E: fmt::Display,
    P: FnOnce(&str) -> Result<T, E>,
    C: FnOnce(Vec<String>) -> Result<T, E>,
{
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.expected)
    }

    fn visit_str<F: Error>(self, text: &str) -> Result<T, F> {
        (self.parse)(text).map_err(F::custom)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<T, A::Error> {
        let Some(collect) = self.collect else {
            return Err(A::Error::invalid_type(serde::de::Unexpected::Seq, &self));
        };
        let mut texts = Vec::new();
        while let Some(text) = sequence.next_element()? {
            texts.push(text);
        }
        collect(texts).map_err(A::Error::custom)
    }
}
