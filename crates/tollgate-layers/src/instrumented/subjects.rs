//! Subjects in logs: not at all, hashed, or as they are.

use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::sync::OnceLock;

use sha2::{Digest, Sha256};
use tollgate_core::{Error, ErrorKind, Key};

/// How a subject stands in events, once [`Instrumented::log_subjects`](crate::Instrumented::log_subjects) asks for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SubjectLogging {
    /// The first 64 bits of SHA-256 over a random key of this process and the subject, in hexadecimal.
    ///
    /// Within one process the same subject has the same hash, so that events can be brought together. Without the key,
    /// which is never shown and ends with the process, no table of likely subjects gives one back.
    #[default]
    Hashed,
    /// The bytes, those outside of printable ASCII escaped. A subject of more than
    /// [`Key::MAX_SUBJECT`] bytes is known by its SHA-256 only and stands as that.
    Verbatim,
}

/// A subject as it stands in an event.
pub(super) struct Shown<'a> {
    pub(super) key: &'a Key<'a>,
    pub(super) how: SubjectLogging,
}

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.how {
            SubjectLogging::Hashed => write_hex(f, &keyed_hash(self.key.subject())[..8]),
            SubjectLogging::Verbatim if self.key.is_hashed() => {
                f.write_str("sha256:")?;
                write_hex(f, self.key.subject())
            }
            SubjectLogging::Verbatim => self.key.subject().escape_ascii().fmt(f),
        }
    }
}

fn write_hex(f: &mut fmt::Formatter<'_>, bytes: &[u8]) -> fmt::Result {
    bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
}

fn keyed_hash(subject: &[u8]) -> [u8; 32] {
    static SECRET: OnceLock<[u8; 32]> = OnceLock::new();
    let mut hasher = Sha256::new();
    hasher.update(SECRET.get_or_init(secret));
    hasher.update(subject);
    hasher.finalize().into()
}

/// What the standard library draws from the operating system to key its hash maps, 128 bits of it, put through SHA-256.
fn secret() -> [u8; 32] {
    let random = RandomState::new();
    let mut hasher = Sha256::new();
    for index in 0..4_u64 {
        hasher.update(random.hash_one(index).to_le_bytes());
    }
    hasher.finalize().into()
}

/// The words of an error, unless they may name a subject that was not asked for.
///
/// A store names the key that holds something foreign, since somebody has to take it away.
pub(super) struct Words<'a> {
    pub(super) error: &'a Error,
    pub(super) subjects: Option<SubjectLogging>,
    /// Of the call that failed.
    pub(super) keys: &'a [Key<'a>],
}

impl fmt::Display for Words<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = with_causes(self.error);
        let open = self.subjects == Some(SubjectLogging::Verbatim);
        if open || !(self.error.kind() == ErrorKind::Corrupt || self.name_a_subject(&words)) {
            return f.write_str(&words);
        }
        let kind = self.error.kind();
        write!(f, "{kind}: the words may name a subject and are left out")
    }
}

impl Words<'_> {
    fn name_a_subject(&self, words: &str) -> bool {
        self.keys.iter().any(|key| {
            let subject = key.subject();
            stands_in(words, &subject.escape_ascii().to_string())
                || stands_in(words, &String::from_utf8_lossy(subject))
                || words.contains(&key.encode().escape_ascii().to_string())
        })
    }
}

/// Whether `words` hold `subject`: anywhere, or as a word of its own if it is so short that it stands in most words.
fn stands_in(words: &str, subject: &str) -> bool {
    const SHORT: usize = 4;
    let in_a_word = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
    words.match_indices(subject).any(|(start, _)| {
        let (before, after) = (&words[..start], &words[start + subject.len()..]);
        subject.len() >= SHORT
            || !(in_a_word(before.chars().next_back()) || in_a_word(after.chars().next()))
    })
}

fn with_causes(error: &Error) -> String {
    let mut words = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        words.push_str(": ");
        words.push_str(&error.to_string());
        cause = error.source();
    }
    words
}

#[cfg(test)]
mod tests {
    use tollgate_core::{Policy, Quota, Space};

    use super::*;

    fn shown(kind: ErrorKind, words: &'static str, subject: &str) -> String {
        let error = Error::new(kind, words);
        let space = Space::new("", "", &Policy::from(Quota::per_second(1)));
        let key = Key::new(&space, subject.as_bytes()).unwrap();
        let words = Words {
            error: &error,
            subjects: Some(SubjectLogging::Hashed),
            keys: &[key],
        };
        words.to_string()
    }

    #[test]
    fn words_that_name_nobody_are_shown() {
        let words = "connection refused (os error 111)";
        for subject in ["user:42", "1", "11", "err"] {
            let shown = shown(ErrorKind::Unavailable, words, subject);
            assert_eq!(shown, format!("store unavailable: {words}"), "{subject}");
        }
    }

    #[test]
    fn words_that_name_the_subject_are_left_out() {
        for (words, subject) in [
            ("no slot for user:42, sorry", "user:42"),
            ("no slot for xuser:42x", "user:42"),
            ("no slot for 7", "7"),
            ("no slot for b1v0:0:7:default7", "7"),
            (r"no slot for a\n", "a\n"),
        ] {
            let shown = shown(ErrorKind::Other, words, subject);
            assert_eq!(
                shown,
                "store failed: the words may name a subject and are left out"
            );
        }
    }

    #[test]
    fn words_about_what_is_stored_are_left_out_whoever_they_name() {
        let shown = shown(ErrorKind::Corrupt, "the key of somebody else", "user:42");
        assert_eq!(
            shown,
            "corrupt stored state: the words may name a subject and are left out"
        );
    }
}
