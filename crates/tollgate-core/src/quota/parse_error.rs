//! Why a text is not a quota, and where.

use std::error::Error;
use std::fmt;

use super::{QuotaError, cursor::Span};

/// How much of a refused text an error keeps on each side of the place it points at, in characters.
const EXCERPT_REACH: usize = 40;

/// Why a text was refused, where, and what would have been accepted there.
///
/// The message is one line in lower case without a trailing stop. Columns count characters, not bytes,
/// from 1, over the whole text, a list included. An error holds a short excerpt of the text, never all
/// of a long one.
///
/// # Examples
///
/// ```
/// use tollgate_core::{ParseQuotaErrorKind, Quota};
///
/// let error = "100/mont".parse::<Quota>().unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     "column 5: unknown unit \"mont\"; expected one of second, minute, hour, day, week or ms"
/// );
/// assert_eq!(error.kind(), ParseQuotaErrorKind::UnknownUnit);
/// assert_eq!(error.column(), 5);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParseQuotaError {
    kind: ParseQuotaErrorKind,
    column: usize,
    found: Box<str>,
    expected: &'static str,
    excerpt: Excerpt,
}

/// What kind of mistake a [`ParseQuotaError`] reports.
///
/// # Examples
///
/// ```
/// use tollgate_core::{ParseQuotaErrorKind, Quota, QuotaError};
///
/// let kind_of = |text: &str| text.parse::<Quota>().unwrap_err().kind();
/// assert_eq!(kind_of("100/month"), ParseQuotaErrorKind::CalendarUnit);
/// assert_eq!(kind_of("1.5/second"), ParseQuotaErrorKind::Fraction);
/// assert_eq!(kind_of("5/0 seconds"), ParseQuotaErrorKind::Value(QuotaError::PeriodZero));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ParseQuotaErrorKind {
    /// Nothing but whitespace.
    Empty,
    /// Something else than the grammar has at this place.
    Unexpected,
    /// The text ends too early.
    UnexpectedEnd,
    /// A word in the place of a unit that is no unit.
    UnknownUnit,
    /// A month or a year, whose length depends on the calendar.
    CalendarUnit,
    /// A unit shorter than the shortest period.
    UnitTooFine,
    /// A plus or minus sign before a number.
    Sign,
    /// A number with a decimal point.
    Fraction,
    /// A separator between the digits of a number, which may also be a decimal comma or end a quota.
    DigitGroup,
    /// A number that begins with a zero, which some languages read as octal.
    LeadingZero,
    /// A digit of another script, or another numeric character than `0` to `9`.
    ForeignDigit,
    /// More digits than any limit, period or burst has.
    NumberTooLarge,
    /// A separator with no quota behind it.
    TrailingSeparator,
    /// Several quotas where one belongs.
    SeveralQuotas,
    /// Well written, but no legal quota has this value.
    Value(QuotaError),
}

impl ParseQuotaError {
    pub(super) fn new(
        text: &str,
        kind: ParseQuotaErrorKind,
        span: Span<'_>,
        expected: &'static str,
    ) -> Self {
        Self {
            kind,
            column: span.column,
            found: shorten(span.text),
            expected,
            excerpt: Excerpt::new(text, span),
        }
    }

    /// What kind of mistake it is.
    #[must_use]
    pub fn kind(&self) -> ParseQuotaErrorKind {
        self.kind
    }

    /// Where the offending part begins, in characters counted from 1; one past the last at the end.
    #[must_use]
    pub fn column(&self) -> usize {
        self.column
    }

    /// The offending part of the text, empty at the end; a part longer than 40 characters is cut
    /// there and ends in `…`.
    ///
    /// # Examples
    ///
    /// ```
    /// use tollgate_core::Quota;
    ///
    /// assert_eq!("100/fortnight".parse::<Quota>().unwrap_err().found(), "fortnight");
    /// assert_eq!("100/".parse::<Quota>().unwrap_err().found(), "");
    /// ```
    #[must_use]
    pub fn found(&self) -> &str {
        &self.found
    }

    /// What would have been accepted, worded to follow "expected".
    ///
    /// # Examples
    ///
    /// ```
    /// use tollgate_core::Quota;
    ///
    /// let error = "100/month".parse::<Quota>().unwrap_err();
    /// assert_eq!(error.expected(), "a fixed length such as 30 days");
    /// ```
    #[must_use]
    pub fn expected(&self) -> &str {
        self.expected
    }

    /// The text with a line of carets under the offending part, for a terminal in a fixed-width font.
    ///
    /// Characters that would not take up one cell for themselves, such as tabs and combining marks, are
    /// shown as a space or as `\u{fffd}`; one drawn two cells wide shifts the carets behind it. A long text
    /// is cut on both sides and marked with `…`.
    ///
    /// # Examples
    ///
    /// ```
    /// use tollgate_core::Quota;
    ///
    /// let error = "100 per fortnight".parse::<Quota>().unwrap_err();
    /// assert_eq!(
    ///     error.caret(),
    ///     "100 per fortnight\n\
    ///     \u{20}       ^^^^^^^^^"
    /// );
    /// ```
    #[must_use]
    pub fn caret(&self) -> String {
        let Excerpt {
            shown,
            indent,
            width,
        } = &self.excerpt;
        format!("{shown}\n{:indent$}{:^>width$}", "", "")
    }

    /// The part of the text shown above the carets.
    #[cfg(feature = "serde")]
    pub(super) fn excerpt(&self) -> &str {
        &self.excerpt.shown
    }
}

impl fmt::Display for ParseQuotaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use ParseQuotaErrorKind as Kind;
        let found = &self.found;
        write!(f, "column {}: ", self.column)?;
        match self.kind {
            // The sentence of a value names the number and what was expected by itself.
            Kind::Value(error) => return write!(f, "{error}"),
            Kind::Empty => write!(f, "no quota given"),
            Kind::Unexpected => write!(f, "unexpected {found:?}"),
            Kind::UnexpectedEnd => write!(f, "unexpected end of the text"),
            Kind::UnknownUnit => write!(f, "unknown unit {found:?}"),
            Kind::CalendarUnit => write!(f, "unit {found:?} has no fixed length"),
            Kind::UnitTooFine => write!(f, "unit {found:?} is too short"),
            Kind::Sign => write!(f, "sign {found:?} in place of a digit"),
            Kind::Fraction => write!(f, "{found:?} is not a whole number"),
            Kind::DigitGroup => write!(f, "separator between the digits of {found:?}"),
            Kind::LeadingZero => write!(f, "leading zero in {found:?}"),
            Kind::ForeignDigit => write!(f, "unexpected digit {found:?}"),
            Kind::NumberTooLarge => write!(f, "number {found} is too large"),
            Kind::TrailingSeparator => write!(f, "no quota after {found:?}"),
            Kind::SeveralQuotas => write!(f, "{found:?} leads to a second quota"),
        }?;
        write!(f, "; expected {}", self.expected)
    }
}

impl Error for ParseQuotaError {}

/// The surroundings of a mistake and where the carets go under it, in characters.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Excerpt {
    shown: Box<str>,
    indent: usize,
    width: usize,
}

impl Excerpt {
    fn new(text: &str, span: Span<'_>) -> Self {
        let start = span.column.saturating_sub(1);
        let first = start.saturating_sub(EXCERPT_REACH);
        let mut rest = text.chars().skip(first);
        let mut shown = String::new();
        if first > 0 {
            shown.push('…');
        }
        shown.extend(rest.by_ref().take(2 * EXCERPT_REACH).map(one_cell));
        if rest.next().is_some() {
            shown.push('…');
        }
        let found = span.text.chars().take(EXCERPT_REACH).count();
        Self {
            shown: shown.into_boxed_str(),
            indent: start - first + usize::from(first > 0),
            width: found.max(1),
        }
    }
}

/// Replaces what a terminal does not draw in a cell of its own.
fn one_cell(character: char) -> char {
    let drawn = matches!(character, '"' | '\'' | '\\') || character.escape_debug().count() == 1;
    match character {
        _ if drawn => character,
        '\t' | '\n' | '\r' => ' ',
        _ => char::REPLACEMENT_CHARACTER,
    }
}

fn shorten(found: &str) -> Box<str> {
    match found.char_indices().nth(EXCERPT_REACH) {
        None => found.into(),
        Some((end, _)) => format!("{}…", &found[..end]).into_boxed_str(),
    }
}
