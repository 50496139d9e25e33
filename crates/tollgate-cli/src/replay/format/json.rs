//! JSON lines: one object per line, with the names of nginx, Caddy, Traefik and the like, or names given by flags.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;
use tollgate_core::Timestamp;

use super::time::{EpochUnit, TimeReader};
use super::{Reason, Record, clf, is_absent};

/// Where the time stands unless a flag says otherwise; of several in one line, the first of this list counts.
pub(crate) const TIME_FIELDS: [&str; 8] = [
    "time",
    "timestamp",
    "@timestamp",
    "ts",
    "msec",
    "time_iso8601",
    "time_local",
    "date",
];
/// Where the client's address stands unless a flag says otherwise.
pub(crate) const ADDRESS_FIELDS: [&str; 12] = [
    "remote_addr",
    "request.client_ip",
    "request.remote_ip",
    "request.remote_addr",
    "client_ip",
    "remote_ip",
    "client.ip",
    "source.ip",
    "clientip",
    "ClientHost",
    "address",
    "ip",
];
/// Where the path stands unless a flag says otherwise; `request` is a whole request line.
pub(crate) const PATH_FIELDS: [&str; 8] = [
    "request_uri",
    "request.uri",
    "uri",
    "path",
    "url.path",
    "RequestPath",
    "url",
    "request",
];

/// Field names given by flags; `None` stands for the lists above.
#[derive(Clone, Debug, Default)]
pub(crate) struct FieldNames {
    pub(crate) time: Option<String>,
    pub(crate) address: Option<String>,
    pub(crate) path: Option<String>,
}

/// Reads JSON lines.
#[derive(Debug)]
pub(crate) struct JsonReader {
    names: FieldNames,
    time: TimeReader,
}

impl JsonReader {
    pub(crate) fn new(names: FieldNames, unit: Option<EpochUnit>) -> Self {
        Self {
            names,
            time: TimeReader::new(unit),
        }
    }

    /// Reads one line and hands it to `then`.
    pub(crate) fn read<T>(
        &mut self,
        line: &[u8],
        then: impl FnOnce(&dyn Record) -> T,
    ) -> Result<T, Reason> {
        // JSON is UTF-8, but nginx writes the bytes of a header as they came.
        let text = String::from_utf8_lossy(line);
        let object = Object::parse(&text).map_err(|error| format!("not a JSON object: {error}"))?;
        let time = self.time.read(&self.time_of(&object)?)?;
        Ok(then(&JsonRecord {
            object,
            time,
            names: &self.names,
        }))
    }

    fn time_of(&self, object: &Object<'_>) -> Result<String, Reason> {
        if let Some(text) = object.named_or_first(self.names.time.as_deref(), &TIME_FIELDS) {
            return Ok(text);
        }
        Err(match &self.names.time {
            Some(name) => format!("no field {name:?} for the time").into(),
            None => format!(
                "no field for the time ({}); name it with --time-field",
                TIME_FIELDS.join(", ")
            )
            .into(),
        })
    }
}

struct JsonRecord<'a> {
    object: Object<'a>,
    time: Timestamp,
    names: &'a FieldNames,
}

impl Record for JsonRecord<'_> {
    fn time(&self) -> Timestamp {
        self.time
    }

    fn address(&self) -> Option<Cow<'_, [u8]>> {
        self.object
            .named_or_first(self.names.address.as_deref(), &ADDRESS_FIELDS)
            .map(bytes)
    }

    fn target(&self) -> Option<Cow<'_, [u8]>> {
        let text = self
            .object
            .named_or_first(self.names.path.as_deref(), &PATH_FIELDS)?;
        // `GET /path HTTP/1.1` or the path alone.
        if !text.contains(' ') {
            return Some(bytes(text));
        }
        clf::request_target(text.as_bytes()).map(|target| Cow::Owned(target.to_vec()))
    }

    /// `request.headers.NAME` (Caddy), `headers.NAME`, `http_name` (nginx), `request_NAME` (Traefik) or `name`,
    /// in any case of letters.
    fn header(&self, name: &str) -> Option<Cow<'_, [u8]>> {
        let underscored = name.replace('-', "_");
        let spellings = [
            format!("request.headers.{name}"),
            format!("headers.{name}"),
            format!("http_{underscored}"),
            format!("request_{name}"),
            underscored,
        ];
        spellings
            .iter()
            .find_map(|spelling| self.object.text(spelling, Letters::AnyCase))
            .map(bytes)
    }

    fn field(&self, name: &str) -> Option<Cow<'_, [u8]>> {
        self.object.text(name, Letters::Exact).map(bytes)
    }
}

fn bytes<'a>(text: String) -> Cow<'a, [u8]> {
    Cow::Owned(text.into_bytes())
}

#[derive(Clone, Copy)]
enum Letters {
    Exact,
    AnyCase,
}

/// An object whose values stay unread until somebody asks: numbers keep all their digits, and most are never needed.
#[derive(Deserialize)]
struct Object<'a>(#[serde(borrow)] BTreeMap<Name<'a>, &'a RawValue>);

#[derive(Deserialize, PartialEq, Eq, PartialOrd, Ord)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

impl<'a> Object<'a> {
    fn parse(text: &'a str) -> serde_json::Result<Self> {
        serde_json::from_str(text)
    }

    fn named_or_first(&self, name: Option<&str>, candidates: &[&str]) -> Option<String> {
        if let Some(name) = name {
            return self.text(name, Letters::Exact);
        }
        candidates
            .iter()
            .find_map(|candidate| self.text(candidate, Letters::Exact))
    }

    /// The text of a field; `a.b` is the field `a.b` or else the field `b` of the object `a`.
    fn text(&self, name: &str, letters: Letters) -> Option<String> {
        if let Some(value) = self.get(name, letters) {
            return text_of(value);
        }
        let (outer, inner) = name.split_once('.')?;
        Self::parse(self.get(outer, letters)?.get())
            .ok()?
            .text(inner, letters)
    }

    fn get(&self, name: &str, letters: Letters) -> Option<&'a RawValue> {
        match letters {
            Letters::Exact => self.0.get(&Name(Cow::Borrowed(name))).copied(),
            Letters::AnyCase => self
                .0
                .iter()
                .find(|(own, _)| own.0.eq_ignore_ascii_case(name))
                .map(|(_, value)| *value),
        }
    }
}

/// A string's characters, a number's digits; a list of one (Caddy's headers) is its element, other lists and objects
/// are their JSON text. What a server writes for "nothing" (`null`, `""`, `"-"`) is `None`.
fn text_of(value: &RawValue) -> Option<String> {
    let raw = value.get();
    let text = match raw.as_bytes().first()? {
        b'n' => return None,
        b'"' => serde_json::from_str(raw).ok()?,
        b'[' => match serde_json::from_str::<Vec<&RawValue>>(raw).ok()?[..] {
            [] => return None,
            [single] => return text_of(single),
            [..] => raw.to_owned(),
        },
        _ => raw.to_owned(),
    };
    if is_absent(text.as_bytes()) {
        None
    } else {
        Some(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_record<T>(line: &str, then: impl FnOnce(&dyn Record) -> T) -> Result<T, Reason> {
        JsonReader::new(FieldNames::default(), None).read(line.as_bytes(), then)
    }

    fn text(field: Option<Cow<'_, [u8]>>) -> Option<String> {
        field.map(|bytes| String::from_utf8(bytes.into_owned()).unwrap())
    }

    fn summary(record: &dyn Record) -> (u64, Option<String>, Option<String>, Option<String>) {
        let agent = text(record.header("User-Agent"));
        (
            record.time().as_micros(),
            text(record.address()),
            text(record.target()),
            agent,
        )
    }

    fn some(text: &str) -> Option<String> {
        Some(text.to_owned())
    }

    const MICROS: u64 = 1_431_857_103_123_456;

    #[test]
    fn nginx_lines_are_read_without_flags() {
        let line = r#"{"msec":"1431857103.123456","remote_addr":"198.18.0.9","request":"GET /a?b HTTP/1.1","http_user_agent":"curl"}"#;
        let expected = (MICROS, some("198.18.0.9"), some("/a?b"), some("curl"));
        assert_eq!(with_record(line, summary), Ok(expected));
    }

    #[test]
    fn caddy_lines_are_read_without_flags() {
        let line = r#"{"level":"info","ts":1431857103.1234567,"request":{"remote_ip":"198.18.0.1","client_ip":"2001:db8::1","uri":"/a","headers":{"User-Agent":["curl"],"Accept":["a","b"]}},"status":200}"#;
        assert_eq!(
            with_record(line, summary),
            Ok((MICROS, some("2001:db8::1"), some("/a"), some("curl")))
        );
        let accept = with_record(line, |record| text(record.header("accept")));
        assert_eq!(accept, Ok(some(r#"["a","b"]"#)));
    }

    #[test]
    fn traefik_lines_are_read_without_flags() {
        let line = r#"{"ClientHost":"198.18.0.9","RequestPath":"/a","request_User-Agent":"curl","time":"2015-05-17T10:05:03.123456Z"}"#;
        assert_eq!(
            with_record(line, summary),
            Ok((MICROS, some("198.18.0.9"), some("/a"), some("curl")))
        );
    }

    #[test]
    fn named_fields_take_the_place_of_the_usual_ones() {
        let names = FieldNames {
            time: some("at.t"),
            address: some("who"),
            path: some("r.p"),
        };
        let mut reader = JsonReader::new(names, Some(EpochUnit::Ms));
        let line = br#"{"time":"no","at":{"t":5},"ip":"no","who":"me","path":"no","r.p":"/a"}"#;
        let found = reader.read(line, summary).unwrap();
        assert_eq!(found, (5000, some("me"), some("/a"), None));
        let missing = reader.read(br#"{"time":1}"#, summary).unwrap_err();
        assert_eq!(missing, r#"no field "at.t" for the time"#);
    }

    #[test]
    fn fields_are_text_and_absent_ones_are_none() {
        let line = r#"{"ts":1,"s":"a\"\u00e9\n","n":1.50,"b":true,"null":null,"dash":"-","empty":"","o":{"x":[{"y":1}]},"none":[]}"#;
        let names = [
            "s", "n", "b", "null", "dash", "empty", "o", "o.x", "none", "o.y", "s.x", "absent",
        ];
        let found = with_record(line, |record| names.map(|name| text(record.field(name)))).unwrap();
        let expected = [
            some("a\"é\n"),
            some("1.50"),
            some("true"),
            None,
            None,
            None,
            some(r#"{"x":[{"y":1}]}"#),
            some(r#"{"y":1}"#),
            None,
            None,
            None,
            None,
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn raw_bytes_in_a_header_do_not_lose_the_line() {
        let line = b"{\"ts\":1,\"ip\":\"198.18.0.9\",\"http_user_agent\":\"caf\xe9\"}";
        let found = JsonReader::new(FieldNames::default(), None)
            .read(line, summary)
            .unwrap();
        assert_eq!(
            found,
            (1_000_000, some("198.18.0.9"), None, some("caf\u{fffd}"))
        );
    }

    #[test]
    fn what_is_no_object_or_has_no_time_is_refused_with_the_reason() {
        for line in ["", "null", "[1]", "{", r#"{"ts":1}x"#, r#"{"ts":1"#] {
            assert!(
                with_record(line, summary)
                    .unwrap_err()
                    .starts_with("not a JSON object"),
                "{line}"
            );
        }
        assert!(
            with_record("{}", summary)
                .unwrap_err()
                .contains("--time-field")
        );
        assert!(
            with_record(r#"{"ts":"soon"}"#, summary)
                .unwrap_err()
                .contains("soon")
        );
    }

    proptest::proptest! {
        #[test]
        fn no_bytes_make_the_reader_panic(line in proptest::collection::vec(0_u8.., 0..200)) {
            drop(JsonReader::new(FieldNames::default(), None).read(&line, summary));
        }
    }
}
