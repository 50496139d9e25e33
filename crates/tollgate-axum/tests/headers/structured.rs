//! A strict reader of structured fields, after the grammar of RFC 9651: as much of it as the fields of the draft use.
//!
//! Written apart from what writes them, so that both would have to be wrong in the same way.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// A value of an item or a parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    Integer(u64),
    Text(String),
    Bytes(Vec<u8>),
}

/// A member of a list: a string and its parameters, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Item {
    pub(crate) name: String,
    pub(crate) parameters: Vec<(String, Value)>,
}

impl Item {
    pub(crate) fn keys(&self) -> Vec<&str> {
        self.parameters.iter().map(|(key, _)| &**key).collect()
    }

    pub(crate) fn get(&self, wanted: &str) -> Option<&Value> {
        let found = self.parameters.iter().find(|(key, _)| key == wanted);
        found.map(|(_, value)| value)
    }

    pub(crate) fn number(&self, wanted: &str) -> Option<u64> {
        match self.get(wanted)? {
            Value::Integer(number) => Some(*number),
            other => panic!("{wanted} is {other:?}, not an integer"),
        }
    }
}

/// Reads a list of strings with parameters, or says where it is none.
pub(crate) fn parse_list(text: &str) -> Result<Vec<Item>, String> {
    let mut reader = Reader { text, at: 0 };
    let mut items = Vec::new();
    loop {
        items.push(reader.item()?);
        if reader.at == text.len() {
            return Ok(items);
        }
        reader.skip(" \t");
        reader.expect(b',')?;
        reader.skip(" \t");
    }
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl Reader<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn fail<T>(&self, wanted: &str) -> Result<T, String> {
        Err(format!(
            "{wanted} expected at {} of {:?}",
            self.at, self.text
        ))
    }

    fn expect(&mut self, wanted: u8) -> Result<(), String> {
        if self.peek() != Some(wanted) {
            return self.fail(&char::from(wanted).to_string());
        }
        self.at += 1;
        Ok(())
    }

    fn skip(&mut self, set: &str) {
        self.take(|byte| set.as_bytes().contains(&byte));
    }

    fn take(&mut self, is_part: impl Fn(u8) -> bool) -> &str {
        let start = self.at;
        while self.peek().is_some_and(&is_part) {
            self.at += 1;
        }
        &self.text[start..self.at]
    }

    fn item(&mut self) -> Result<Item, String> {
        let name = self.string()?;
        let mut parameters = Vec::<(String, Value)>::new();
        while self.peek() == Some(b';') {
            self.at += 1;
            self.skip(" ");
            let key = self.key()?;
            if parameters.iter().any(|(known, _)| *known == key) {
                return self.fail("a key that was not there before");
            }
            // A key without a value is the boolean true, which no parameter here may be.
            self.expect(b'=')?;
            parameters.push((key, self.value()?));
        }
        Ok(Item { name, parameters })
    }

    fn key(&mut self) -> Result<String, String> {
        if !self
            .peek()
            .is_some_and(|byte| byte.is_ascii_lowercase() || byte == b'*')
        {
            return self.fail("a key");
        }
        let is_part = |byte: u8| {
            byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-.*".contains(&byte)
        };
        Ok(self.take(is_part).to_owned())
    }

    fn value(&mut self) -> Result<Value, String> {
        match self.peek() {
            Some(b'"') => self.string().map(Value::Text),
            Some(b':') => self.bytes().map(Value::Bytes),
            _ => self.integer().map(Value::Integer),
        }
    }

    /// At most 15 digits; the signs and fractions that the grammar allows are wrong in every parameter here.
    fn integer(&mut self) -> Result<u64, String> {
        let digits = self.take(|byte| byte.is_ascii_digit()).to_owned();
        match digits.parse() {
            Ok(number) if digits.len() <= 15 => Ok(number),
            _ => self.fail("an integer of 1 to 15 digits"),
        }
    }

    fn string(&mut self) -> Result<String, String> {
        self.expect(b'"')?;
        let mut text = String::new();
        loop {
            let byte = match self.peek() {
                Some(b'\\') => {
                    self.at += 1;
                    match self.peek() {
                        Some(byte @ (b'"' | b'\\')) => byte,
                        _ => return self.fail("a quote or a backslash"),
                    }
                }
                Some(b'"') => {
                    self.at += 1;
                    return Ok(text);
                }
                Some(byte @ b' '..=b'~') => byte,
                _ => return self.fail("printable ASCII"),
            };
            text.push(char::from(byte));
            self.at += 1;
        }
    }

    fn bytes(&mut self) -> Result<Vec<u8>, String> {
        self.expect(b':')?;
        let encoded = self.take(|byte| byte != b':').to_owned();
        self.expect(b':')?;
        STANDARD.decode(encoded).map_err(|error| error.to_string())
    }
}

#[test]
fn the_reader_reads_the_drafts_own_examples() {
    let items = parse_list(r#""burst";q=100;w=60,"daily";q=1000;w=86400"#).unwrap();
    assert_eq!(items.len(), 2);
    assert_eq!(
        (items[1].name.as_str(), items[1].number("w")),
        ("daily", Some(86_400))
    );
    let items = parse_list(r#""peruser";q=65535;qu="content-bytes";w=10;pk=:cHsdsRa894==:"#);
    assert!(
        items.is_err(),
        "the draft's example has stray bits in its last digit: {items:?}"
    );
    let items = parse_list(r#""default";r=999;pk=:dHJpYWwxMjEzMjM=:"#).unwrap();
    assert_eq!(
        items[0].get("pk"),
        Some(&Value::Bytes(b"trial121323".to_vec()))
    );
}

#[test]
fn the_reader_is_strict() {
    for wrong in [
        "",
        "\"a\";q=1,",
        "\"a\";q=1 \"b\";q=2",
        "\"a",
        "\"a\\b\"",
        "\"\u{e9}\"",
        "\"a\";Q=1",
        "\"a\";q",
        "\"a\";q=-1",
        "\"a\";q=1.5",
        "\"a\";q=1000000000000000",
        "\"a\";q=1;q=2",
        "\"a\";pk=:a:",
        "a;q=1",
    ] {
        assert!(parse_list(wrong).is_err(), "{wrong}");
    }
}
