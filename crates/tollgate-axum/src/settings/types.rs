//! The types of single settings in configuration files.

use std::fmt;

use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::families::Families;
use super::text::{parsed, parsed_or_listed};
use super::timeout::Timeout;
use crate::key::{ForwardedHeader, Ipv6Prefix, Ipv6PrefixError, TrustedProxies};

/// Writes the list of networks. Needs the feature `settings`.
impl Serialize for TrustedProxies {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.networks().map(ToString::to_string))
    }
}

/// Reads a list of networks, or a text with commas between them. Needs the feature `settings`.
impl<'de> Deserialize<'de> for TrustedProxies {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let expected =
            "networks such as \"10.0.0.0/8\", as a list or with commas between, or \"none\"";
        parsed_or_listed(deserializer, expected, Self::new)
    }
}

impl Serialize for Families {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.names())
    }
}

impl<'de> Deserialize<'de> for Families {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let expected = "\"x-ratelimit\", \"ratelimit\", a list of them, or \"none\"";
        parsed_or_listed(deserializer, expected, Self::of)
    }
}

/// Writes the header's name. Needs the feature `settings`.
impl Serialize for ForwardedHeader {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Reads the header's name. Needs the feature `settings`.
impl<'de> Deserialize<'de> for ForwardedHeader {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        parsed(deserializer, "\"X-Forwarded-For\" or \"Forwarded\"")
    }
}

impl Serialize for Timeout {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timeout {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        parsed(deserializer, "a duration such as \"100ms\" or \"1s\"")
    }
}

/// Writes the length. Needs the feature `settings`.
impl Serialize for Ipv6Prefix {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u8(self.length())
    }
}

/// Reads the length as a number. Needs the feature `settings`.
impl<'de> Deserialize<'de> for Ipv6Prefix {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_u8(LengthVisitor)
    }
}

struct LengthVisitor;

impl Visitor<'_> for LengthVisitor {
    type Value = Ipv6Prefix;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an IPv6 prefix length, 32 to 128")
    }

    fn visit_u64<E: Error>(self, length: u64) -> Result<Ipv6Prefix, E> {
        u8::try_from(length)
            .map_err(|_| Ipv6PrefixError::OutOfRange(length.to_string()))
            .and_then(Ipv6Prefix::new)
            .map_err(E::custom)
    }

    fn visit_i64<E: Error>(self, length: i64) -> Result<Ipv6Prefix, E> {
        match u64::try_from(length) {
            Ok(length) => self.visit_u64(length),
            Err(_) => Err(E::custom(Ipv6PrefixError::OutOfRange(length.to_string()))),
        }
    }
}
