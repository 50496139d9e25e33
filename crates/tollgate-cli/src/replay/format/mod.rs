//! Access log formats: which one a log is in, and what its lines say.

mod clf;
mod json;
mod time;

use std::borrow::Cow;

use clap::ValueEnum;
use tollgate_core::Timestamp;

use self::clf::ClfRecord;
use self::json::JsonReader;
pub(crate) use self::json::{ADDRESS_FIELDS, FieldNames, PATH_FIELDS, TIME_FIELDS};
pub(crate) use self::time::EpochUnit;

/// Why a line cannot be read.
pub(crate) type Reason = Cow<'static, str>;

/// An access log format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Common log format: address identity user [time] "request" status bytes
    Common,
    /// Combined log format: common, then "referer" "user agent"
    Combined,
    /// One JSON object per line
    Json,
}

impl Format {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Common => "common",
            Self::Combined => "combined",
            Self::Json => "json",
        }
    }

    /// The names of all fields; `None` where lines may have any.
    pub(crate) fn fields(self) -> Option<&'static [&'static str]> {
        match self {
            Self::Common => Some(&clf::COMMON_FIELDS),
            Self::Combined => Some(&clf::COMBINED_FIELDS),
            Self::Json => None,
        }
    }

    /// Whether lines of this format can carry the field.
    pub(crate) fn has_field(self, name: &str) -> bool {
        self.fields().is_none_or(|fields| fields.contains(&name))
    }

    /// Whether lines of this format can carry the request header.
    pub(crate) fn has_header(self, name: &str) -> bool {
        match self {
            Self::Common => false,
            Self::Combined => clf::HEADERS
                .iter()
                .any(|header| header.eq_ignore_ascii_case(name)),
            Self::Json => true,
        }
    }
}

/// What a line of any format can be asked for; what the server had nothing to write into is `None`.
pub(crate) trait Record {
    fn time(&self) -> Timestamp;
    fn address(&self) -> Option<Cow<'_, [u8]>>;
    /// The request's target as it was logged, with its query.
    fn target(&self) -> Option<Cow<'_, [u8]>>;
    /// A request header, whatever the case of its letters.
    fn header(&self, name: &str) -> Option<Cow<'_, [u8]>>;
    /// Any field of the line by its name in this format.
    fn field(&self, name: &str) -> Option<Cow<'_, [u8]>>;
}

/// Reads lines of a known format, or of the format that the first readable line is in.
#[derive(Debug)]
pub(crate) struct RecordReader {
    format: Option<Format>,
    json: JsonReader,
}

impl RecordReader {
    pub(crate) fn new(format: Option<Format>, names: FieldNames, unit: Option<EpochUnit>) -> Self {
        Self {
            format,
            json: JsonReader::new(names, unit),
        }
    }

    /// The format, once it is known.
    pub(crate) fn format(&self) -> Option<Format> {
        self.format
    }

    /// Reads one line and hands it to `then`.
    ///
    /// # Errors
    ///
    /// Why the line is none of the format.
    pub(crate) fn read<T>(
        &mut self,
        line: &[u8],
        then: impl FnOnce(&dyn Record) -> T,
    ) -> Result<T, Reason> {
        let is_json = match self.format {
            Some(format) => format == Format::Json,
            None => line.trim_ascii_start().starts_with(b"{"),
        };
        if is_json {
            let result = self.json.read(line, then)?;
            self.format = Some(Format::Json);
            return Ok(result);
        }
        let record = ClfRecord::parse(line)?;
        if self.format == Some(Format::Combined) && !record.is_combined() {
            return Err("the referer and user agent of the combined format are missing".into());
        }
        let detected = if record.is_combined() {
            Format::Combined
        } else {
            Format::Common
        };
        self.format.get_or_insert(detected);
        Ok(then(&record))
    }
}

/// A request target without its query, and without scheme and host if a client sent them to a proxy.
pub(crate) fn path_of(target: &[u8]) -> &[u8] {
    let end = target
        .iter()
        .position(|byte| *byte == b'?')
        .unwrap_or(target.len());
    let path = &target[..end];
    if path.starts_with(b"/") {
        return path;
    }
    let Some(scheme) = path.windows(3).position(|three| three == b"://") else {
        return path;
    };
    let after_scheme = &path[scheme + 3..];
    match after_scheme.iter().position(|byte| *byte == b'/') {
        Some(slash) => &after_scheme[slash..],
        None => b"/",
    }
}

fn is_absent(field: &[u8]) -> bool {
    field.is_empty() || field == b"-"
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMMON: &str = r#"198.18.0.9 - - [17/May/2015:10:05:03 +0000] "GET / HTTP/1.1" 200 2326"#;
    const JSON: &str = r#"{"ts":1431857103,"ip":"198.18.0.9"}"#;

    fn reader(format: Option<Format>) -> RecordReader {
        RecordReader::new(format, FieldNames::default(), None)
    }

    fn read(reader: &mut RecordReader, line: &str) -> Result<u64, Reason> {
        reader.read(line.as_bytes(), |record| record.time().as_micros())
    }

    #[test]
    fn the_first_readable_line_decides_the_format() {
        let combined = format!(r#"{COMMON} "-" "-""#);
        for (line, format) in [
            (COMMON, Format::Common),
            (&combined, Format::Combined),
            (JSON, Format::Json),
        ] {
            let mut reader = reader(None);
            assert!(read(&mut reader, "started").is_err());
            assert!(read(&mut reader, "{}").is_err());
            assert_eq!(reader.format(), None);
            assert_eq!(read(&mut reader, line), Ok(1_431_857_103_000_000));
            assert_eq!(reader.format(), Some(format));
        }
    }

    #[test]
    fn lines_of_another_format_are_refused() {
        assert!(read(&mut reader(Some(Format::Json)), COMMON).is_err());
        assert!(read(&mut reader(Some(Format::Common)), JSON).is_err());
        assert!(read(&mut reader(Some(Format::Combined)), COMMON).is_err());
    }

    #[test]
    fn a_combined_log_may_be_read_as_common() {
        let combined = format!(r#"{COMMON} "-" "-""#);
        assert!(read(&mut reader(Some(Format::Common)), &combined).is_ok());
    }

    #[test]
    fn a_path_has_no_query_and_no_host() {
        let cases = [
            ("/a/b?c=/d", "/a/b"),
            ("/", "/"),
            ("/?", "/"),
            ("*", "*"),
            ("/a?next=http://example.net/b", "/a"),
            ("http://example.net/a?b", "/a"),
            ("http://example.net", "/"),
            ("http://example.net?a=/b", "/"),
            ("example.net:443", "example.net:443"),
        ];
        for (target, path) in cases {
            assert_eq!(path_of(target.as_bytes()), path.as_bytes(), "{target}");
        }
    }
}
