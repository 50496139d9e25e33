//! Walks over the characters of a quota text and knows the column.

/// A part of the text and the column it begins at, in characters counted from 1.
#[derive(Debug, Clone, Copy)]
pub(super) struct Span<'a> {
    pub(super) text: &'a str,
    pub(super) column: usize,
}

/// The place reached in a text.
#[derive(Debug, Clone)]
pub(super) struct Cursor<'a> {
    rest: &'a str,
    column: usize,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self {
            rest: text,
            column: 1,
        }
    }

    pub(super) fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    /// What was taken since `start`, an earlier state of the same cursor.
    pub(super) fn taken_since(&self, start: &Self) -> Span<'a> {
        let length = start.rest.len() - self.rest.len();
        Span {
            text: &start.rest[..length],
            column: start.column,
        }
    }

    /// Takes the longest run of characters that are all `wanted`, which may be empty.
    pub(super) fn take_while(&mut self, wanted: impl Fn(char) -> bool) -> Span<'a> {
        let end = self.rest.find(|character| !wanted(character));
        let (text, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        let taken = Span {
            text,
            column: self.column,
        };
        self.rest = rest;
        self.column += text.chars().count();
        taken
    }

    /// Takes one character, or nothing at the end.
    pub(super) fn take_one(&mut self) -> Span<'a> {
        let length = self.peek().map_or(0, char::len_utf8);
        let (text, rest) = self.rest.split_at(length);
        let taken = Span {
            text,
            column: self.column,
        };
        self.rest = rest;
        self.column += usize::from(length > 0);
        taken
    }

    pub(super) fn take_word(&mut self) -> Span<'a> {
        self.take_while(is_letter)
    }

    pub(super) fn take_digits(&mut self) -> Span<'a> {
        self.take_while(|character| character.is_ascii_digit())
    }

    /// Takes what a reader would point at as one thing: a word, a number or a single character.
    pub(super) fn take_token(&mut self) -> Span<'a> {
        match self.peek() {
            Some(first) if is_letter(first) => self.take_word(),
            Some(first) if first.is_ascii_digit() => self.take_digits(),
            _ => self.take_one(),
        }
    }

    /// Skips spaces, tabs and line ends. Other blanks look the same and are left to be refused.
    pub(super) fn skip_whitespace(&mut self) {
        self.take_while(|character| character.is_ascii_whitespace());
    }
}

/// Letters of every script, so that an error shows a whole word. Roman numerals count as digits.
pub(super) fn is_letter(character: char) -> bool {
    character.is_alphabetic() && !character.is_numeric()
}
