//! Who a request counts for: the subject, made of one or several parts of a log line.

use std::borrow::Cow;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use super::format::{Format, Record, path_of};
use super::text::push_visible;

const SEPARATOR: char = '|';

/// What `--key` names: one or several parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KeySpec(Vec<Part>);

/// One part of a subject.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Address,
    Path,
    Header(String),
    Field(String),
}

impl FromStr for KeySpec {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parts: Vec<Part> = text
            .split(',')
            .map(|part| part.trim().parse())
            .collect::<Result<_, _>>()?;
        match parts
            .iter()
            .enumerate()
            .find(|(index, part)| parts[..*index].contains(part))
        {
            Some((_, part)) => Err(format!("{part} is named twice")),
            None => Ok(Self(parts)),
        }
    }
}

impl FromStr for Part {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.split_once(':') {
            None if text == "address" => Ok(Self::Address),
            None if text == "path" => Ok(Self::Path),
            Some(("header", name)) if !name.is_empty() => Ok(Self::Header(name.to_owned())),
            Some(("field", name)) if !name.is_empty() => Ok(Self::Field(name.to_owned())),
            _ => Err(format!(
                "{text:?} is no part of a key; use address, path, header:NAME or field:NAME, joined by commas"
            )),
        }
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address => f.write_str("address"),
            Self::Path => f.write_str("path"),
            Self::Header(name) => write!(f, "header:{name}"),
            Self::Field(name) => write!(f, "field:{name}"),
        }
    }
}

impl fmt::Display for KeySpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, part) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str(",")?;
            }
            part.fmt(f)?;
        }
        Ok(())
    }
}

impl KeySpec {
    /// Writes the subject of a line into `out`.
    ///
    /// A part alone is the subject as it is. Several are joined by `|`, and a `|` or backslash within a part gets a
    /// backslash before it, so no two different lists of parts make the same subject.
    ///
    /// # Errors
    ///
    /// The part that the line does not have. Such a line counts for nobody, rather than all of them for one subject.
    pub(crate) fn write_subject(&self, record: &dyn Record, out: &mut String) -> Result<(), &Part> {
        out.clear();
        let mut visible = String::new();
        for (index, part) in self.0.iter().enumerate() {
            let value = part.of(record).ok_or(part)?;
            if self.0.len() == 1 {
                push_visible(&value, out);
                break;
            }
            if index > 0 {
                out.push(SEPARATOR);
            }
            visible.clear();
            push_visible(&value, &mut visible);
            push_separable(&visible, out);
        }
        Ok(())
    }

    /// Whether subjects are addresses and nothing else.
    pub(crate) fn is_address(&self) -> bool {
        self.0 == [Part::Address]
    }

    /// The first part that no line of `format` can have.
    pub(crate) fn impossible_part(&self, format: Format) -> Option<&Part> {
        self.0.iter().find(|part| match part {
            Part::Address | Part::Path => false,
            Part::Header(name) => !format.has_header(name),
            Part::Field(name) => !format.has_field(name),
        })
    }
}

impl Part {
    fn of<'a>(&self, record: &'a dyn Record) -> Option<Cow<'a, [u8]>> {
        match self {
            Self::Address => record.address().map(canonical_address),
            Self::Path => {
                let path = path_of(&record.target()?).to_vec();
                if path.is_empty() {
                    None
                } else {
                    Some(Cow::Owned(path))
                }
            }
            Self::Header(name) => record.header(name),
            Self::Field(name) => record.field(name),
        }
    }
}

fn push_separable(part: &str, out: &mut String) {
    for character in part.chars() {
        if character == SEPARATOR || character == '\\' {
            out.push('\\');
        }
        out.push(character);
    }
}

/// One spelling per address: a port is cut off, and `::ffff:192.0.2.1` is the client 192.0.2.1.
fn canonical_address(address: Cow<'_, [u8]>) -> Cow<'_, [u8]> {
    if !address.contains(&b':') {
        return address;
    }
    let Ok(text) = std::str::from_utf8(&address) else {
        return address;
    };
    let parsed = text
        .parse::<IpAddr>()
        .or_else(|_| text.parse::<SocketAddr>().map(|with_port| with_port.ip()));
    match parsed {
        Ok(ip) => Cow::Owned(ip.to_canonical().to_string().into_bytes()),
        Err(_) => address,
    }
}

#[cfg(test)]
mod tests {
    use tollgate_core::Timestamp;

    use super::*;

    struct Line {
        address: &'static str,
        target: &'static str,
        header: &'static str,
    }

    fn some_bytes(text: &str) -> Option<Cow<'_, [u8]>> {
        if text.is_empty() {
            None
        } else {
            Some(Cow::Borrowed(text.as_bytes()))
        }
    }

    impl Record for Line {
        fn time(&self) -> Timestamp {
            Timestamp::EPOCH
        }

        fn address(&self) -> Option<Cow<'_, [u8]>> {
            some_bytes(self.address)
        }

        fn target(&self) -> Option<Cow<'_, [u8]>> {
            some_bytes(self.target)
        }

        fn header(&self, name: &str) -> Option<Cow<'_, [u8]>> {
            assert_eq!(name, "x-api-key");
            some_bytes(self.header)
        }

        fn field(&self, _: &str) -> Option<Cow<'_, [u8]>> {
            None
        }
    }

    fn subject(
        key: &str,
        address: &'static str,
        target: &'static str,
        header: &'static str,
    ) -> Result<String, String> {
        let mut out = "left over".to_owned();
        let key: KeySpec = key.parse().unwrap();
        match key.write_subject(
            &Line {
                address,
                target,
                header,
            },
            &mut out,
        ) {
            Ok(()) => Ok(out),
            Err(part) => Err(part.to_string()),
        }
    }

    #[test]
    fn a_single_part_is_the_subject_as_it_is() {
        assert_eq!(
            subject("address", "198.18.0.9", "", ""),
            Ok("198.18.0.9".to_owned())
        );
        assert_eq!(
            subject("path", "", r"/a|b\c?d", ""),
            Ok(r"/a|b\c".to_owned())
        );
        assert_eq!(
            subject("header:x-api-key", "", "", "secret"),
            Ok("secret".to_owned())
        );
    }

    #[test]
    fn parts_are_joined_so_that_no_two_lists_meet() {
        let key = "path, header:x-api-key";
        let lists = [
            ("/a|b", "c"),
            ("/a", "b|c"),
            (r"/a\", "b|c"),
            (r"/a\|b", "c"),
            (r"/a", r"\b|c"),
        ];
        let subjects = lists.map(|(path, header)| subject(key, "", path, header).unwrap());
        assert_eq!(subjects[0], r"/a\|b|c");
        for (index, one) in subjects.iter().enumerate() {
            assert!(!subjects[index + 1..].contains(one), "{one} came twice");
        }
    }

    #[test]
    fn a_line_without_one_of_the_parts_has_no_subject() {
        assert_eq!(
            subject("address,header:x-api-key", "198.18.0.9", "/", ""),
            Err("header:x-api-key".to_owned())
        );
        assert_eq!(
            subject("path", "", "?query-only", ""),
            Err("path".to_owned())
        );
        assert_eq!(
            subject("field:user", "198.18.0.9", "/", ""),
            Err("field:user".to_owned())
        );
    }

    #[test]
    fn one_address_is_one_subject_however_it_is_written() {
        let spellings = [
            ("198.18.0.9", "198.18.0.9"),
            ("198.18.0.9:5678", "198.18.0.9"),
            ("::ffff:198.18.0.9", "198.18.0.9"),
            ("[::ffff:198.18.0.9]:80", "198.18.0.9"),
            ("2001:DB8:0::1", "2001:db8::1"),
            ("[2001:db8::1]:443", "2001:db8::1"),
            ("client.example.net", "client.example.net"),
            ("unix:", "unix:"),
        ];
        for (written, expected) in spellings {
            assert_eq!(subject("address", written, "", ""), Ok(expected.to_owned()));
        }
    }

    #[test]
    fn a_key_is_printed_as_it_is_read() {
        let text = "address,path,header:X-Api-Key,field:a.b";
        assert_eq!(text.parse::<KeySpec>().unwrap().to_string(), text);
    }

    #[test]
    fn what_is_no_key_is_refused_with_what_would_be() {
        for text in [
            "", "ip", "address,", "header:", "header", "field:", "Address",
        ] {
            let error = text.parse::<KeySpec>().unwrap_err();
            assert!(
                error.contains("use address, path, header:NAME or field:NAME"),
                "{text}: {error}"
            );
        }
        assert_eq!(
            "path,path".parse::<KeySpec>().unwrap_err(),
            "path is named twice"
        );
    }

    #[test]
    fn parts_that_a_format_never_has_are_found() {
        let cases = [
            ("address,path", Format::Common, None),
            (
                "header:User-Agent",
                Format::Common,
                Some("header:User-Agent"),
            ),
            ("header:User-Agent,field:user", Format::Combined, None),
            (
                "address,header:x-api-key",
                Format::Combined,
                Some("header:x-api-key"),
            ),
            ("field:referer", Format::Common, Some("field:referer")),
            ("field:colour", Format::Combined, Some("field:colour")),
            ("field:colour,header:x", Format::Json, None),
        ];
        for (key, format, expected) in cases {
            let key: KeySpec = key.parse().unwrap();
            assert_eq!(
                key.impossible_part(format)
                    .map(ToString::to_string)
                    .as_deref(),
                expected
            );
        }
    }
}
