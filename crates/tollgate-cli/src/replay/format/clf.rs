//! The common and the combined log format of Apache and nginx, read from bytes.
//!
//! `address identity user [time] "request" status bytes`, and in the combined format `"referer" "user agent"` after it.
//! Further fields at the end of a line are not looked at.
//! The fields are described at <https://httpd.apache.org/docs/current/logs.html>.

use std::borrow::Cow;
use std::net::IpAddr;

use tollgate_core::Timestamp;

use super::{Reason, Record, is_absent, path_of, time};

/// One line; fields the server had nothing to write into (`-`) are `None`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ClfRecord<'a> {
    address: &'a [u8],
    identity: &'a [u8],
    user: &'a [u8],
    time: Timestamp,
    request: &'a [u8],
    status: &'a [u8],
    bytes: &'a [u8],
    /// Referer and user agent.
    headers: Option<(&'a [u8], &'a [u8])>,
}

/// Names of the common format's fields, for [`Record::field`].
pub(crate) const COMMON_FIELDS: [&str; 9] = [
    "address", "identity", "user", "request", "method", "path", "protocol", "status", "bytes",
];
/// Names of the combined format's fields.
pub(crate) const COMBINED_FIELDS: [&str; 11] = [
    "address",
    "identity",
    "user",
    "request",
    "method",
    "path",
    "protocol",
    "status",
    "bytes",
    "referer",
    "user-agent",
];
/// The fields of the combined format that are request headers.
pub(crate) const HEADERS: [&str; 2] = ["referer", "user-agent"];

impl<'a> ClfRecord<'a> {
    pub(crate) fn parse(line: &'a [u8]) -> Result<Self, Reason> {
        let (address, rest) =
            split_at_space(line).ok_or("expected an address, a space and more")?;
        let (identity, rest) =
            split_at_space(rest).ok_or("expected the identity after the address")?;
        refuse_virtual_host(identity)?;
        let (user, time, rest) = split_user_and_time(rest)?;
        let (request, rest) =
            split_quoted(rest).ok_or("expected the request in quotes after the time")?;
        let rest = rest
            .strip_prefix(b" ")
            .ok_or("expected a status after the request")?;
        let (status, rest) =
            split_at_space(rest).ok_or("expected a status and a size after the request")?;
        if !is_number_or_dash(status) {
            return Err("the status after the request is not a number".into());
        }
        let (bytes, rest) = split_at_space(rest).unwrap_or((rest, b""));
        if !is_number_or_dash(bytes) {
            return Err("the size after the status is not a number".into());
        }
        let headers = split_headers(rest);
        Ok(Self {
            address,
            identity,
            user,
            time,
            request,
            status,
            bytes,
            headers,
        })
    }

    /// Whether the line carries the two fields that the combined format adds.
    pub(crate) fn is_combined(&self) -> bool {
        self.headers.is_some()
    }
}

impl Record for ClfRecord<'_> {
    fn time(&self) -> Timestamp {
        self.time
    }

    fn address(&self) -> Option<Cow<'_, [u8]>> {
        present(self.address)
    }

    fn target(&self) -> Option<Cow<'_, [u8]>> {
        request_target(self.request).and_then(present)
    }

    /// The referer or the user agent, the only headers in these formats.
    fn header(&self, name: &str) -> Option<Cow<'_, [u8]>> {
        let (referer, user_agent) = self.headers?;
        if name.eq_ignore_ascii_case("referer") {
            return present(referer);
        }
        if name.eq_ignore_ascii_case("user-agent") {
            return present(user_agent);
        }
        None
    }

    /// A field by its name in [`COMBINED_FIELDS`].
    fn field(&self, name: &str) -> Option<Cow<'_, [u8]>> {
        match name {
            "address" => self.address(),
            "identity" => present(self.identity),
            "user" => present(self.user),
            "request" => present(self.request),
            "method" => split_at_space(self.request).and_then(|(method, _)| present(method)),
            "path" => request_target(self.request).map(path_of).and_then(present),
            "protocol" => self
                .request
                .rsplit(|byte| *byte == b' ')
                .find(|word| is_protocol(word))
                .and_then(present),
            "status" => present(self.status),
            "bytes" => present(self.bytes),
            "referer" | "user-agent" => self.header(name),
            _ => None,
        }
    }
}

/// The target of `METHOD target PROTOCOL`, or of HTTP/0.9's `METHOD target`; a target may itself hold spaces.
pub(crate) fn request_target(request: &[u8]) -> Option<&[u8]> {
    let (_, rest) = split_at_space(request)?;
    let target = match rest.iter().rposition(|byte| *byte == b' ') {
        Some(space) if is_protocol(&rest[space + 1..]) => &rest[..space],
        _ => rest,
    };
    if target.is_empty() {
        None
    } else {
        Some(target)
    }
}

fn is_protocol(word: &[u8]) -> bool {
    word.starts_with(b"HTTP/")
}

fn present(field: &[u8]) -> Option<Cow<'_, [u8]>> {
    if is_absent(field) {
        None
    } else {
        Some(Cow::Borrowed(field))
    }
}

/// Apache's `vhost_combined` puts a host first: without this check the host would be taken for every client's address.
fn refuse_virtual_host(identity: &[u8]) -> Result<(), Reason> {
    let is_address = std::str::from_utf8(identity).is_ok_and(|text| text.parse::<IpAddr>().is_ok());
    if is_address {
        return Err("the second field is an address: the line starts with a virtual host, which has to be cut off".into());
    }
    Ok(())
}

fn split_at_space(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let space = text.iter().position(|byte| *byte == b' ')?;
    if space == 0 {
        None
    } else {
        Some((&text[..space], &text[space + 1..]))
    }
}

/// Splits `user [time] rest` at the first bracket that holds a time: user names may hold spaces and brackets.
fn split_user_and_time(text: &[u8]) -> Result<(&[u8], Timestamp, &[u8]), Reason> {
    let mut reason = Reason::from("expected the user, then the time in brackets");
    for (space, _) in text
        .windows(2)
        .enumerate()
        .filter(|(_, pair)| *pair == b" [")
    {
        let inside = &text[space + 2..];
        let Some(end) = inside.windows(2).position(|pair| pair == b"] ") else {
            break;
        };
        match time::parse_clf(&inside[..end]) {
            Ok(time) => return Ok((&text[..space], time, &inside[end + 2..])),
            Err(error) => reason = error,
        }
    }
    Err(reason)
}

/// Splits `"quoted" rest`, where a backslash takes the special meaning from the byte after it.
fn split_quoted(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let text = text.strip_prefix(b"\"")?;
    let mut escaped = false;
    for (index, byte) in text.iter().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return Some((&text[..index], &text[index + 1..])),
            _ => {}
        }
    }
    None
}

fn split_headers(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let (referer, rest) = split_quoted(text)?;
    let (user_agent, _) = split_quoted(rest.strip_prefix(b" ")?)?;
    Some((referer, user_agent))
}

fn is_number_or_dash(text: &[u8]) -> bool {
    text == b"-" || (!text.is_empty() && text.iter().all(u8::is_ascii_digit))
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMMON: &str =
        r#"198.18.0.9 - - [17/May/2015:10:05:03 +0000] "GET /a?b=c HTTP/1.1" 200 2326"#;

    fn parse(line: &str) -> Result<ClfRecord<'_>, Reason> {
        ClfRecord::parse(line.as_bytes())
    }

    fn with_request(request: &str) -> String {
        COMMON.replace("GET /a?b=c HTTP/1.1", request)
    }

    fn text(field: Option<Cow<'_, [u8]>>) -> Option<String> {
        field.map(|bytes| String::from_utf8(bytes.into_owned()).unwrap())
    }

    fn some(text: &str) -> Option<String> {
        Some(text.to_owned())
    }

    #[test]
    fn a_common_line_gives_all_its_fields() {
        let line = COMMON.replace("- - [", "ident jane [");
        let record = parse(&line).unwrap();
        assert!(!record.is_combined());
        assert_eq!(record.time().as_micros(), 1_431_857_103_000_000);
        let expected = [
            ("address", Some("198.18.0.9")),
            ("identity", Some("ident")),
            ("user", Some("jane")),
            ("request", Some("GET /a?b=c HTTP/1.1")),
            ("method", Some("GET")),
            ("path", Some("/a")),
            ("protocol", Some("HTTP/1.1")),
            ("status", Some("200")),
            ("bytes", Some("2326")),
            ("referer", None),
            ("user-agent", None),
        ];
        assert_eq!(
            COMBINED_FIELDS.map(|name| (name, text(record.field(name)))),
            expected.map(|(name, value)| (name, value.map(str::to_owned)))
        );
        assert_eq!(record.field("colour"), None);
    }

    #[test]
    fn a_combined_line_has_referer_and_user_agent_in_any_case_of_letters() {
        let line = format!(r#"{COMMON} "https://example.net/" "Mozilla/5.0 (a \"quoted\" word)""#);
        let record = parse(&line).unwrap();
        assert!(record.is_combined());
        assert_eq!(text(record.header("Referer")), some("https://example.net/"));
        assert_eq!(
            text(record.header("USER-AGENT")),
            some(r#"Mozilla/5.0 (a \"quoted\" word)"#)
        );
        assert_eq!(record.header("x-api-key"), None);
    }

    #[test]
    fn ipv6_host_names_and_user_names_with_spaces_are_read() {
        let ipv6 = COMMON.replace("198.18.0.9", "2001:db8::1");
        assert_eq!(text(parse(&ipv6).unwrap().address()), some("2001:db8::1"));
        let host = COMMON.replace("198.18.0.9", "client.example.net");
        assert_eq!(
            text(parse(&host).unwrap().address()),
            some("client.example.net")
        );
        let user = COMMON.replace("- - [", "- jane of the [docs] [team [");
        assert_eq!(
            text(parse(&user).unwrap().field("user")),
            some("jane of the [docs] [team")
        );
    }

    #[test]
    fn a_dash_is_an_absent_field() {
        let line = COMMON.replace("198.18.0.9", "-").replace("2326", "-");
        let record = parse(&line).unwrap();
        assert_eq!(
            (
                record.address(),
                record.field("user"),
                record.field("bytes")
            ),
            (None, None, None)
        );
    }

    #[test]
    fn odd_requests_are_lines_without_a_path() {
        for request in ["-", "", r"\x16\x03\x01\x02", "GET", "GET "] {
            let line = with_request(request);
            assert_eq!(parse(&line).unwrap().target(), None, "{request:?}");
        }
    }

    #[test]
    fn the_target_is_what_stands_between_method_and_protocol() {
        let cases = [
            ("GET / HTTP/1.0", "/"),
            ("GET /old", "/old"),
            ("GET /with space HTTP/1.1", "/with space"),
            ("GET /HTTP/1.1 HTTP/1.1", "/HTTP/1.1"),
            (r#"GET /say\"hi\" HTTP/1.1"#, r#"/say\"hi\""#),
            ("OPTIONS * HTTP/1.1", "*"),
            ("CONNECT example.net:443 HTTP/1.1", "example.net:443"),
        ];
        for (request, target) in cases {
            let line = with_request(request);
            assert_eq!(
                text(parse(&line).unwrap().target()),
                some(target),
                "{request:?}"
            );
        }
    }

    #[test]
    fn further_fields_at_the_end_are_not_looked_at() {
        let line = format!(r#"{COMMON} "-" "agent" 0.012 "upstream" more"#);
        assert!(parse(&line).unwrap().is_combined());
        let line = format!("{COMMON} 0.012 more");
        assert!(!parse(&line).unwrap().is_combined());
    }

    #[test]
    fn bytes_that_are_not_utf8_are_kept() {
        let mut line =
            b"198.18.0.9 - - [17/May/2015:10:05:03 +0000] \"GET /\xff HTTP/1.1\" 200 1".to_vec();
        assert_eq!(
            ClfRecord::parse(&line).unwrap().target().as_deref(),
            Some(&b"/\xff"[..])
        );
        line[0] = 0xff;
        assert!(
            ClfRecord::parse(&line)
                .unwrap()
                .address()
                .is_some_and(|address| address[0] == 0xff)
        );
    }

    #[test]
    fn a_virtual_host_in_front_is_refused_rather_than_taken_for_the_address() {
        for address in ["198.18.0.9", "2001:db8::1"] {
            let line = format!("example.net:80 {address} - - {}", &COMMON[15..]);
            assert!(parse(&line).unwrap_err().contains("virtual host"), "{line}");
        }
    }

    #[test]
    fn every_cut_of_a_line_is_refused_or_read_and_never_a_panic() {
        let line = format!(r#"{COMMON} "-" "agent""#);
        for end in 0..line.len() {
            let complete = COMMON.len() - 3;
            assert_eq!(
                parse(&line[..end]).is_ok(),
                end >= complete,
                "{}",
                &line[..end]
            );
        }
    }

    proptest::proptest! {
        #[test]
        fn no_bytes_make_the_parser_panic(line in proptest::collection::vec(0_u8.., 0..200)) {
            drop(ClfRecord::parse(&line));
        }

        #[test]
        fn no_damage_to_a_good_line_makes_the_parser_panic(at in 0..COMMON.len(), byte in 0_u8..) {
            let mut line = COMMON.as_bytes().to_vec();
            line[at] = byte;
            drop(ClfRecord::parse(&line));
        }
    }
}
