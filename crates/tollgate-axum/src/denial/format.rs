//! Which of the document's spellings a client gets.

use http::{HeaderMap, header};
use mediatype::{MediaType, MediaTypeList, Name, ReadParams, names};

/// How a denial is spelled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DenialFormat {
    /// As the request's `Accept` asks (RFC 9110, section 12.5.1); of spellings it likes equally, the first of those below.
    ///
    /// [`Problem`](Self::Problem) also for a request that accepts none of them, says nothing, or says it in a way that
    /// cannot be read: a client that is turned away should at least learn why. Parameters of media ranges other than
    /// `q` are not looked at.
    #[default]
    Negotiate,
    /// `application/problem+json` (RFC 9457).
    Problem,
    /// The same document as `application/json`, for clients that know no other.
    Json,
    /// A few lines of `text/plain; charset=utf-8`.
    Text,
}

/// A spelling, once it is decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Spelling {
    Problem,
    Json,
    Text,
}

impl Spelling {
    /// In the order in which they are preferred.
    const ALL: [Self; 3] = [Self::Problem, Self::Json, Self::Text];

    pub(super) const fn content_type(self) -> &'static str {
        match self {
            Self::Problem => "application/problem+json",
            Self::Json => "application/json",
            Self::Text => "text/plain; charset=utf-8",
        }
    }

    const fn media_type(self) -> MediaType<'static> {
        match self {
            Self::Problem => MediaType::from_parts(
                names::APPLICATION,
                Name::new_unchecked("problem"),
                Some(names::JSON),
                &[],
            ),
            Self::Json => MediaType::new(names::APPLICATION, names::JSON),
            Self::Text => MediaType::new(names::TEXT, names::PLAIN),
        }
    }
}

impl DenialFormat {
    pub(super) fn spelling(self, request: &HeaderMap) -> Spelling {
        match self {
            Self::Negotiate => negotiate(request).unwrap_or(Spelling::Problem),
            Self::Problem => Spelling::Problem,
            Self::Json => Spelling::Json,
            Self::Text => Spelling::Text,
        }
    }
}

/// How well a media range names a media type, and how much the client likes it, in thousandths.
///
/// Of two, the greater is the one that counts: the closer range, and of one range named twice the better weight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Preference {
    specificity: u8,
    quality: u16,
}

/// The spelling that the request likes best; `None` if it likes none or cannot be read.
fn negotiate(request: &HeaderMap) -> Option<Spelling> {
    let mut preferences = [Preference::default(); Spelling::ALL.len()];
    for value in request.get_all(header::ACCEPT) {
        for range in MediaTypeList::new(value.to_str().ok()?) {
            let range = range.ok()?;
            let quality = quality(&range)?;
            for (spelling, preference) in Spelling::ALL.into_iter().zip(&mut preferences) {
                if let Some(specificity) = specificity(&range, spelling) {
                    *preference = (*preference).max(Preference {
                        specificity,
                        quality,
                    });
                }
            }
        }
    }
    let mut best = (0, None);
    for (spelling, preference) in Spelling::ALL.into_iter().zip(preferences) {
        if preference.quality > best.0 {
            best = (preference.quality, Some(spelling));
        }
    }
    best.1
}

/// How closely `range` names the spelling; `None` if it does not.
fn specificity(range: &MediaType<'_>, spelling: Spelling) -> Option<u8> {
    let offered = spelling.media_type();
    if range.essence() == offered {
        return Some(2);
    }
    match (range.ty == names::_STAR, range.subty == names::_STAR) {
        (true, true) => Some(0),
        (false, true) if range.ty == offered.ty => Some(1),
        _ => None,
    }
}

/// The weight of a media range (RFC 9110, section 12.4.2) in thousandths; `None` if it is not one.
fn quality(range: &MediaType<'_>) -> Option<u16> {
    let Some(weight) = range.get_param(names::Q) else {
        return Some(1_000);
    };
    let (whole, fraction) = weight
        .as_str()
        .split_once('.')
        .unwrap_or((weight.as_str(), ""));
    if fraction.len() > 3 || !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let digits = fraction.bytes().map(|byte| u16::from(byte - b'0'));
    let thousandths = digits
        .chain(std::iter::repeat(0))
        .take(3)
        .fold(0, |number, digit| number * 10 + digit);
    match whole {
        "0" => Some(thousandths),
        "1" if thousandths == 0 => Some(1_000),
        _ => None,
    }
}
