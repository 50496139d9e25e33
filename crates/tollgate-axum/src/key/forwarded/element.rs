//! The elements of a `Forwarded` header (RFC 7239, section 4).

use std::borrow::Cow;

use super::error::ForwardedProblem;
use ForwardedProblem::{NoFor, NotAnElement, RepeatedFor};

/// Splits the last element off a list; what is left of it comes second, where there is a comma.
///
/// It reads from the right and stops at the first comma that is not between quotes. So what a client sent, say a quote
/// that it never closed, cannot change how the elements behind it are read, which the proxies wrote.
pub(super) fn split_last(list: &[u8]) -> (&[u8], Option<&[u8]>) {
    let mut in_quotes = false;
    for index in (0..list.len()).rev() {
        match list[index] {
            b'"' if !in_quotes => in_quotes = true,
            b'"' => in_quotes = is_escaped(&list[..index]),
            b',' if !in_quotes => return (&list[index + 1..], Some(&list[..index])),
            _ => {}
        }
    }
    (list, None)
}

/// Whether the byte behind `before` is escaped: an odd number of backslashes stands in front of it.
fn is_escaped(before: &[u8]) -> bool {
    let backslashes = before.iter().rev().take_while(|byte| **byte == b'\\');
    backslashes.count() % 2 == 1
}

/// The value of `for` in an element.
pub(super) fn forwarded_for(element: &str) -> Result<Cow<'_, str>, ForwardedProblem> {
    let mut found = None;
    let mut rest = element;
    loop {
        rest = rest.trim_start_matches([' ', '\t']);
        if !rest.is_empty() && !rest.starts_with(';') {
            let (name, value, behind) = pair(rest)?;
            if name.eq_ignore_ascii_case("for") && found.replace(value).is_some() {
                return Err(RepeatedFor);
            }
            rest = behind.trim_start_matches([' ', '\t']);
        }
        match rest.strip_prefix(';') {
            Some(behind) => rest = behind,
            None if rest.is_empty() => return found.ok_or(NoFor),
            None => return Err(NotAnElement),
        }
    }
}

/// A name, its value and what follows.
fn pair(text: &str) -> Result<(&str, Cow<'_, str>, &str), ForwardedProblem> {
    let (name, rest) = token(text).ok_or(NotAnElement)?;
    let rest = rest.strip_prefix('=').ok_or(NotAnElement)?;
    if let Some(quoted) = rest.strip_prefix('"') {
        let (value, rest) = quoted_string(quoted).ok_or(NotAnElement)?;
        return Ok((name, value, rest));
    }
    let (value, rest) = token(rest).ok_or(NotAnElement)?;
    Ok((name, Cow::Borrowed(value), rest))
}

/// A token (RFC 9110, section 5.6.2) and what follows.
fn token(text: &str) -> Option<(&str, &str)> {
    let in_token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
    let end = text.find(|c| !in_token(c)).unwrap_or(text.len());
    (end > 0).then(|| text.split_at(end))
}

/// The text of a quoted string (RFC 9110, section 5.6.4) behind its first quote, and what follows the last one.
fn quoted_string(text: &str) -> Option<(Cow<'_, str>, &str)> {
    let end = text.find(['"', '\\'])?;
    if let Some(rest) = text[end..].strip_prefix('"') {
        return Some((Cow::Borrowed(&text[..end]), rest));
    }
    let mut value = String::new();
    let mut chars = text.chars();
    loop {
        match chars.next()? {
            '"' => return Some((Cow::Owned(value), chars.as_str())),
            '\\' => value.push(chars.next()?),
            c => value.push(c),
        }
    }
}
