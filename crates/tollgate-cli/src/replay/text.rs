//! Bytes of a log as text that is safe to print and to compare.

use std::fmt::Write;

/// Appends `bytes` to `out`; control characters and bytes that are not UTF-8 become `\xNN`.
///
/// Web servers write such bytes the same way, so a raw byte and an escaped one name the same subject,
/// and nothing taken from a log can steer the terminal it is printed on.
pub(crate) fn push_visible(bytes: &[u8], out: &mut String) {
    for chunk in bytes.utf8_chunks() {
        push_visible_str(chunk.valid(), out);
        push_escaped(chunk.invalid(), out);
    }
}

fn push_visible_str(text: &str, out: &mut String) {
    if !text.chars().any(char::is_control) {
        out.push_str(text);
        return;
    }
    for character in text.chars() {
        if character.is_control() {
            push_escaped(character.encode_utf8(&mut [0; 4]).as_bytes(), out);
        } else {
            out.push(character);
        }
    }
}

fn push_escaped(bytes: &[u8], out: &mut String) {
    for byte in bytes {
        write!(out, "\\x{byte:02X}").expect("writing to a String cannot fail");
    }
}

/// The first `limit` characters of `bytes`, made printable, with an ellipsis where something was cut.
pub(crate) fn excerpt(bytes: &[u8], limit: usize) -> String {
    let mut whole = String::new();
    // Four bytes are the longest character; one character more shows whether something is cut.
    let enough = bytes.len().min(limit.saturating_add(1).saturating_mul(4));
    push_visible(&bytes[..enough], &mut whole);
    shortened(&whole, limit)
}

/// The first `limit` characters of `text`, with an ellipsis where something was cut.
pub(crate) fn shortened(text: &str, limit: usize) -> String {
    match text.char_indices().nth(limit) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// `number` with a comma between thousands.
pub(crate) fn grouped(number: impl Into<u128>) -> String {
    let digits = number.into().to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// So many things: `1 hit`, `1,000 hits`.
pub(crate) fn counted(number: u64, noun: &str) -> String {
    match number {
        1 => format!("1 {noun}"),
        _ => format!("{} {noun}s", grouped(number)),
    }
}

/// `part` of `whole` in percent with one decimal, rounded half up; nothing of nothing is 0 %.
pub(crate) fn percent(part: u64, whole: u64) -> String {
    let permille = (u128::from(part) * 2000 + u128::from(whole)) / (u128::from(whole) * 2).max(1);
    format!("{}.{} %", permille / 10, permille % 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn visible(bytes: &[u8]) -> String {
        let mut out = String::new();
        push_visible(bytes, &mut out);
        out
    }

    #[test]
    fn control_characters_and_broken_utf8_are_escaped_and_the_rest_is_kept() {
        assert_eq!(
            visible("/caf\u{e9}\u{1b}[31m".as_bytes()),
            "/caf\u{e9}\\x1B[31m"
        );
        assert_eq!(visible(b"\xff\x00a"), "\\xFF\\x00a");
        assert_eq!(visible("\u{9b}".as_bytes()), "\\xC2\\x9B");
    }

    #[test]
    fn an_excerpt_counts_characters_and_marks_the_cut() {
        assert_eq!(excerpt("äöü".as_bytes(), 3), "äöü");
        assert_eq!(excerpt("äöüx".as_bytes(), 3), "äöü…");
        assert_eq!(excerpt(&b"abc".repeat(1000), 4), "abca…");
    }

    #[test]
    fn thousands_are_grouped() {
        let cases = [
            (0_u64, "0"),
            (999, "999"),
            (1000, "1,000"),
            (1_234_567, "1,234,567"),
        ];
        for (number, expected) in cases {
            assert_eq!(grouped(number), expected);
        }
    }

    #[test]
    fn one_thing_is_singular_and_none_is_plural() {
        assert_eq!(
            [0, 1, 2000].map(|number| counted(number, "hit")),
            ["0 hits", "1 hit", "2,000 hits"]
        );
    }

    #[test]
    fn shares_are_rounded_half_up_and_survive_the_extremes() {
        let cases = [
            (0, 0, "0.0 %"),
            (1, 3, "33.3 %"),
            (2, 3, "66.7 %"),
            (1, 2000, "0.1 %"),
            (1, 2001, "0.0 %"),
            (u64::MAX, u64::MAX, "100.0 %"),
        ];
        for (part, whole, expected) in cases {
            assert_eq!(percent(part, whole), expected, "{part} of {whole}");
        }
    }
}
