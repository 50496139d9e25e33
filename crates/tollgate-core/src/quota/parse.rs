//! Reads quotas from text. The grammar stands in `docs/quota.md`.

use std::str::FromStr;
use std::time::Duration;

use super::cursor::{Cursor, Span, is_letter};
use super::unit::{Unit, UnitWord};
use super::{ParseQuotaError, ParseQuotaErrorKind as Kind, Quota, QuotaError};

type Result<T> = std::result::Result<T, ParseQuotaError>;

/// Reads one quota, such as `100/minute` or `20/s burst 100`.
///
/// Accepts the spellings listed under [Text](Quota#text) and refuses whatever has two readings.
///
/// # Errors
///
/// [`ParseQuotaError`] with the column and what would have been accepted there.
///
/// # Examples
///
/// ```
/// use tollgate_core::Quota;
///
/// let quota: Quota = "100 per 2 minutes".parse()?;
/// assert_eq!(quota.to_string(), "100/2 minutes");
/// # Ok::<(), tollgate_core::ParseQuotaError>(())
/// ```
impl FromStr for Quota {
    type Err = ParseQuotaError;

    fn from_str(text: &str) -> Result<Self> {
        let mut parser = Parser::new(text);
        parser.refuse_empty()?;
        let quota = parser.quota()?;
        parser.end_of_only_quota()?;
        Ok(quota)
    }
}

/// Reads quotas separated by `;` or `,`; there is at least one.
pub(super) fn parse_list(text: &str) -> Result<Vec<Quota>> {
    let mut parser = Parser::new(text);
    parser.refuse_empty()?;
    let mut quotas = vec![parser.quota()?];
    while parser.separator()? {
        quotas.push(parser.quota()?);
    }
    Ok(quotas)
}

/// Reads a period alone, such as `minute` or `15 seconds`.
#[cfg(feature = "serde")]
pub(super) fn parse_period(text: &str) -> Result<Duration> {
    let mut parser = Parser::new(text);
    let period = parser.period()?;
    parser.end()?;
    Ok(period)
}

/// What the errors about a number say was expected.
struct Expected {
    /// Where something else stands in place of the number.
    number: &'static str,
    /// Where the number has too many digits.
    maximum: &'static str,
}

const LIMIT: Expected = Expected {
    number: "a limit such as the 100 of 100/minute",
    maximum: "a limit of at most 1000000000000",
};

const PERIOD: Expected = Expected {
    number: "a period such as minute or 15 seconds",
    maximum: "a period of at most 400 days",
};

const BURST: Expected = Expected {
    number: "a burst such as the 100 of burst 100",
    maximum: "a burst of at most 1000000000000",
};

/// What stands between the digits of one number in some notations.
const JOINERS: [char; 5] = ['.', ',', '_', '\'', '\u{2019}'];

const UNIT_NAMES: &str = "one of second, minute, hour, day, week or ms";

struct Number<'a> {
    value: u64,
    span: Span<'a>,
}

struct Parser<'a> {
    text: &'a str,
    cursor: Cursor<'a>,
}

impl<'a> Parser<'a> {
    fn new(text: &'a str) -> Self {
        Self {
            text,
            cursor: Cursor::new(text),
        }
    }

    /// One quota: `limit ("/" | "per") period ["burst" burst]`.
    fn quota(&mut self) -> Result<Quota> {
        let limit = self.limit()?;
        self.per()?;
        let period = self.period()?;
        self.burst(Quota::from_checked(limit, period))
    }

    fn limit(&mut self) -> Result<u64> {
        let Number { value, span } = self.number(&LIMIT)?;
        Quota::check_limit(value).map_err(|error| self.value(error, span))?;
        Ok(value)
    }

    fn per(&mut self) -> Result<()> {
        self.cursor.skip_whitespace();
        let sign = self.cursor.clone().take_token();
        if sign.text != "/" && !sign.text.eq_ignore_ascii_case("per") {
            return Err(self.unexpected("\"/\" or \"per\""));
        }
        self.cursor.take_token();
        Ok(())
    }

    /// A period: `[count] unit`.
    fn period(&mut self) -> Result<Duration> {
        self.cursor.skip_whitespace();
        let start = self.cursor.clone();
        if self.cursor.peek().is_some_and(is_letter) {
            return Ok(Duration::from_millis(self.unit()?.millis));
        }
        let count = self.number(&PERIOD)?;
        let unit = self.unit()?;
        let Some(millis) = count.value.checked_mul(unit.millis) else {
            return Err(self.error(Kind::NumberTooLarge, count.span, PERIOD.maximum));
        };
        let period = Duration::from_millis(millis);
        let span = self.cursor.taken_since(&start);
        Quota::check_period(period).map_err(|error| self.value(error, span))?;
        Ok(period)
    }

    fn unit(&mut self) -> Result<&'static Unit> {
        self.cursor.skip_whitespace();
        if !self.cursor.peek().is_some_and(is_letter) {
            return Err(self.unexpected(UNIT_NAMES));
        }
        let word = self.cursor.take_word();
        let (kind, expected) = match UnitWord::read(word.text) {
            UnitWord::Known(unit) => return Ok(unit),
            UnitWord::Month => (Kind::CalendarUnit, "a fixed length such as 30 days"),
            UnitWord::Year => (Kind::CalendarUnit, "a fixed length such as 365 days"),
            UnitWord::FinerThanMillisecond => (Kind::UnitTooFine, "ms or a longer unit"),
            UnitWord::Unknown => (Kind::UnknownUnit, UNIT_NAMES),
        };
        Err(self.error(kind, word, expected))
    }

    /// The burst that may follow a period.
    fn burst(&mut self, quota: Quota) -> Result<Quota> {
        self.cursor.skip_whitespace();
        if !self.cursor.peek().is_some_and(is_letter) {
            return Ok(quota);
        }
        let word = self.cursor.take_word();
        if !word.text.eq_ignore_ascii_case("burst") {
            return Err(self.error(Kind::Unexpected, word, "\"burst\" or the end of the quota"));
        }
        let burst = self.number(&BURST)?;
        quota
            .with_burst(burst.value)
            .map_err(|error| self.value(error, burst.span))
    }

    fn number(&mut self, expected: &Expected) -> Result<Number<'a>> {
        self.cursor.skip_whitespace();
        let start = self.cursor.clone();
        let span = self.cursor.take_digits();
        if let Some(joiner) = self.joiner()
            && (joiner == '.' || !span.text.is_empty())
        {
            return Err(self.joined(start, joiner));
        }
        if span.text.is_empty() {
            return Err(self.no_number(expected.number));
        }
        if span.text.len() > 1 && span.text.starts_with('0') {
            return Err(self.error(Kind::LeadingZero, span, "a number that begins with 1 to 9"));
        }
        match span.text.parse() {
            Ok(value) => Ok(Number { value, span }),
            Err(_) => Err(self.error(Kind::NumberTooLarge, span, expected.maximum)),
        }
    }

    /// The next character, if it joins a digit behind it to what stands before it.
    fn joiner(&self) -> Option<char> {
        let mut ahead = self.cursor.clone();
        let joiner = ahead.take_one().text.chars().next()?;
        let digit_follows = ahead.peek().is_some_and(|next| next.is_ascii_digit());
        (JOINERS.contains(&joiner) && digit_follows).then_some(joiner)
    }

    /// Refuses a number whose digits are parted by `joiner`.
    fn joined(&self, mut start: Cursor<'a>, joiner: char) -> ParseQuotaError {
        let run = start.take_while(|next| next.is_ascii_digit() || JOINERS.contains(&next));
        let span = Span {
            text: run.text.trim_end_matches(JOINERS),
            ..run
        };
        let (kind, expected) = match joiner {
            '.' => (
                Kind::Fraction,
                "a whole number, as in 3/2 seconds for 1.5/second",
            ),
            ',' => (
                Kind::DigitGroup,
                "digits only, or a space after a comma that ends a quota",
            ),
            _ => (Kind::DigitGroup, "digits only"),
        };
        self.error(kind, span, expected)
    }

    /// Refuses what stands in place of a number.
    fn no_number(&self, expected: &'static str) -> ParseQuotaError {
        let token = self.cursor.clone().take_one();
        // Hyphens and dashes come along when a text is pasted from a document.
        match token.text {
            "+" | "-" | "\u{2010}" | "\u{2011}" | "\u{2012}" | "\u{2013}" | "\u{2212}" => {
                self.error(Kind::Sign, token, "digits only")
            }
            _ => self.unexpected(expected),
        }
    }

    /// Takes the separator after a quota; false at the end of the text.
    fn separator(&mut self) -> Result<bool> {
        self.cursor.skip_whitespace();
        match self.cursor.peek() {
            None => return Ok(false),
            Some(';' | ',') => {}
            Some(_) => return Err(self.unexpected("\";\" or the end of the text")),
        }
        let separator = self.cursor.take_one();
        self.cursor.skip_whitespace();
        match self.cursor.peek() {
            Some(_) => Ok(true),
            None => Err(self.error(
                Kind::TrailingSeparator,
                separator,
                "another quota, or no separator at the end",
            )),
        }
    }

    fn end(&mut self) -> Result<()> {
        self.cursor.skip_whitespace();
        match self.cursor.peek() {
            None => Ok(()),
            Some(_) => Err(self.unexpected("the end of the text")),
        }
    }

    fn end_of_only_quota(&mut self) -> Result<()> {
        self.cursor.skip_whitespace();
        let token = self.cursor.clone().take_one();
        match token.text {
            ";" | "," => Err(self.error(Kind::SeveralQuotas, token, "one quota only")),
            _ => self.end(),
        }
    }

    fn refuse_empty(&self) -> Result<()> {
        if !self.text.trim_ascii().is_empty() {
            return Ok(());
        }
        let start = Span {
            text: "",
            column: 1,
        };
        Err(self.error(Kind::Empty, start, "a quota such as 100/minute"))
    }

    /// Refuses whatever comes next.
    fn unexpected(&self, expected: &'static str) -> ParseQuotaError {
        let token = self.cursor.clone().take_token();
        match token.text.chars().next() {
            None => self.error(Kind::UnexpectedEnd, token, expected),
            Some(first) if first.is_numeric() && !first.is_ascii_digit() => {
                self.error(Kind::ForeignDigit, token, "the digits 0 to 9")
            }
            Some(_) => self.error(Kind::Unexpected, token, expected),
        }
    }

    fn value(&self, error: QuotaError, span: Span<'_>) -> ParseQuotaError {
        self.error(Kind::Value(error), span, error.expected())
    }

    fn error(&self, kind: Kind, span: Span<'_>, expected: &'static str) -> ParseQuotaError {
        ParseQuotaError::new(self.text, kind, span, expected)
    }
}
