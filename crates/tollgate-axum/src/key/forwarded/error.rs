//! What is wrong with what a trusted proxy says.

use std::fmt;

use super::header::ForwardedHeader;

/// How much of an entry an error keeps, in bytes.
const EXCERPT: usize = 64;

/// An entry that had to be read and does not tell an address.
///
/// ```
/// use tollgate_axum::{ForwardedAddress, ForwardedProblem, KeyError, KeyExtractor};
///
/// let (mut parts, ()) = http::Request::new(()).into_parts();
/// parts.headers.insert("x-forwarded-for", "203.0.113.7, unknown".parse()?);
/// let error = ForwardedAddress::hops(1)?.extract_now(&parts).unwrap().unwrap_err();
/// let KeyError::Forwarded(error) = error else { panic!("{error}") };
/// assert_eq!(error.problem(), ForwardedProblem::NotAnAddress);
/// assert_eq!(
///     error.to_string(),
///     "X-Forwarded-For, entry 1 from the right, \"unknown\": not an address; expected an IPv4 or IPv6 address, with or \
///      without a port"
/// );
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForwardedError {
    header: ForwardedHeader,
    position: usize,
    excerpt: Box<str>,
    problem: ForwardedProblem,
}

/// What kind of mistake a [`ForwardedError`] reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ForwardedProblem {
    /// Nothing between two commas.
    #[error("empty; expected an address")]
    Empty,
    /// No IPv4 or IPv6 address.
    #[error("not an address; expected an IPv4 or IPv6 address, with or without a port")]
    NotAnAddress,
    /// An address with something else than a port behind it.
    #[error("not a port behind the address; expected a colon and up to five digits")]
    NotAPort,
    /// An IPv6 address without brackets in `Forwarded`.
    #[error("an IPv6 address without brackets; expected for=\"[2001:db8::1]\"")]
    NoBrackets,
    /// The proxy does not know its client, and says so by `for=unknown`.
    #[error("the proxy does not know the address; make it tell the address")]
    Unknown,
    /// The proxy hides its client's address behind a name of its own, such as `for=_hidden`.
    #[error("the proxy hides the address; make it tell the address")]
    Obfuscated,
    /// Not `name=value` pairs, separated by semicolons.
    #[error(
        "not an element of RFC 7239; expected pairs such as for=192.0.2.1;proto=https, colons only between quotes"
    )]
    NotAnElement,
    /// No `for` among the pairs of an element.
    #[error("no for in the element; expected one, such as for=192.0.2.1")]
    NoFor,
    /// Two `for` in one element.
    #[error("for is there twice in one element; expected it once")]
    RepeatedFor,
    /// Fewer entries than there are proxies.
    #[error("the header has fewer entries than there are proxies; expected one from each")]
    TooFewEntries,
}

impl ForwardedError {
    #[cold]
    pub(super) fn new(
        header: ForwardedHeader,
        position: usize,
        entry: &[u8],
        problem: ForwardedProblem,
    ) -> Self {
        let shown = &entry[..entry.len().min(EXCERPT)];
        let ellipsis = if shown.len() < entry.len() { "..." } else { "" };
        Self {
            header,
            position,
            excerpt: format!("{}{ellipsis}", shown.escape_ascii()).into(),
            problem,
        }
    }

    /// The header.
    #[must_use]
    pub fn header(&self) -> ForwardedHeader {
        self.header
    }

    /// Which entry it is, counted from the right, from 1, over all lines of the header.
    #[must_use]
    pub fn position(&self) -> usize {
        self.position
    }

    /// What is wrong with it.
    #[must_use]
    pub fn problem(&self) -> ForwardedProblem {
        self.problem
    }
}

/// One line, with the beginning of the entry and what would be right.
impl fmt::Display for ForwardedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            header,
            position,
            excerpt,
            problem,
        } = self;
        write!(f, "{header}, entry {position} from the right, ")?;
        if *problem != ForwardedProblem::TooFewEntries {
            write!(f, "\"{excerpt}\": ")?;
        }
        write!(f, "{problem}")
    }
}

impl std::error::Error for ForwardedError {}
