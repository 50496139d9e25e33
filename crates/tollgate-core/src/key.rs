//! Keys: which counter a hit goes to, told apart without any two ever meeting.

use std::fmt;
use std::sync::Arc;

use sha2::{Digest, Sha256};

use crate::algorithm::Family;
use crate::error::{Error, ErrorKind, Result};
use crate::policy::Policy;

/// What all keys of one policy in one limiter share: prefix, scope, policy name and the kind of state.
///
/// Worked out when a limiter is built. Two spaces with the same four parts are the same space, in any process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Space {
    digest: u128,
    family: Family,
    prefix: Arc<str>,
    scope: Arc<str>,
    policy: Arc<str>,
}

impl Space {
    /// The space of `policy` under `prefix` and `scope`. Any text will do for both, also none.
    #[must_use]
    pub fn new(prefix: &str, scope: &str, policy: &Policy) -> Self {
        let family = policy.algorithm().family();
        let mut hasher = Sha256::new();
        for part in [prefix, scope, policy.name(), family.tag()] {
            hasher.update(u64::try_from(part.len()).unwrap_or(u64::MAX).to_le_bytes());
            hasher.update(part);
        }
        Self {
            digest: first_half(&hasher.finalize().into()),
            family,
            prefix: Arc::from(prefix),
            scope: Arc::from(scope),
            policy: Arc::from(policy.name()),
        }
    }

    /// 128 bits of the SHA-256 of the four parts, each with its length in front: the space's identity.
    #[must_use]
    #[inline]
    pub const fn digest(&self) -> u128 {
        self.digest
    }

    /// The kind of state under these keys.
    #[must_use]
    pub const fn family(&self) -> Family {
        self.family
    }

    /// The application's prefix.
    #[must_use]
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// Which routes or actions share the counter.
    #[must_use]
    pub fn scope(&self) -> &str {
        &self.scope
    }

    /// The policy's name.
    #[must_use]
    pub fn policy(&self) -> &str {
        &self.policy
    }
}

/// The name of one counter: a [`Space`] and a subject.
///
/// A subject is any bytes but none. Up to [`MAX_SUBJECT`](Self::MAX_SUBJECT) bytes stand as they are; a longer subject
/// is replaced by its SHA-256, in a space of its own, so that a hash never meets a subject spelled like it.
///
/// ```
/// use tollgate_core::{Key, Policy, Quota, Space};
///
/// let policy = Policy::from(Quota::per_minute(10));
/// let (one, other) = (Space::new("", "a/b", &policy), Space::new("", "a", &policy));
/// assert_ne!(Key::new(&one, b"c")?.encode(), Key::new(&other, b"b/c")?.encode());
/// assert!(Key::new(&one, b"").is_err());
/// # Ok::<(), tollgate_core::Error>(())
/// ```
#[derive(Clone, Copy)]
pub struct Key<'a> {
    space: &'a Space,
    subject: Subject<'a>,
}

#[derive(Clone, Copy)]
enum Subject<'a> {
    Verbatim(&'a [u8]),
    Hashed([u8; 32]),
}

/// Tells the space of hashed subjects from the space of subjects that stand as they are.
const HASHED: u128 = 0x6861_7368_6564_2073_7562_6a65_6374_2131;

impl<'a> Key<'a> {
    /// The longest subject that stands in the key as it is, in bytes.
    pub const MAX_SUBJECT: usize = 256;

    /// The key of `subject` in `space`.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`] for an empty subject. A request without an identity is the caller's to decide about:
    /// it must not share one counter with all others, and it must not pass uncounted.
    #[inline]
    pub fn new(space: &'a Space, subject: &'a [u8]) -> Result<Self> {
        if subject.is_empty() {
            return Err(empty_subject());
        }
        let subject = if subject.len() <= Self::MAX_SUBJECT {
            Subject::Verbatim(subject)
        } else {
            Subject::Hashed(Sha256::digest(subject).into())
        };
        Ok(Self { space, subject })
    }

    /// The key of a subject that stands as it is; `None` if it is empty or too long for that.
    #[inline]
    pub(crate) const fn verbatim(space: &'a Space, subject: &'a [u8]) -> Option<Self> {
        if subject.is_empty() || subject.len() > Self::MAX_SUBJECT {
            return None;
        }
        Some(Self {
            space,
            subject: Subject::Verbatim(subject),
        })
    }

    /// The space.
    #[must_use]
    #[inline]
    pub const fn space(&self) -> &'a Space {
        self.space
    }

    /// The subject's bytes as they stand in the key.
    #[must_use]
    #[inline]
    pub const fn subject(&self) -> &[u8] {
        match &self.subject {
            Subject::Verbatim(bytes) => bytes,
            Subject::Hashed(hash) => hash,
        }
    }

    /// Whether [`subject`](Self::subject) is the hash of a longer one.
    #[must_use]
    #[inline]
    pub const fn is_hashed(&self) -> bool {
        matches!(self.subject, Subject::Hashed(_))
    }

    /// 128 bits that stand for everything but the subject: the space's digest, and whether the subject is hashed.
    ///
    /// Two keys are the same if and only if these and their subjects are.
    #[must_use]
    #[inline]
    pub const fn digest(&self) -> u128 {
        match self.subject {
            Subject::Verbatim(_) => self.space.digest,
            Subject::Hashed(_) => self.space.digest ^ HASHED,
        }
    }

    /// The whole key as bytes. No two keys encode alike, whatever their parts hold.
    ///
    /// The format tag, `h` for a hashed subject or `v` for one as it is, then prefix, scope and policy name, each with
    /// its length in decimal and a colon in front, then the subject to the end.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let space = self.space;
        let kind = if self.is_hashed() { 'h' } else { 'v' };
        let mut encoded = format!("{}{kind}", space.family.tag()).into_bytes();
        for part in [space.prefix(), space.scope(), space.policy()] {
            encoded.extend_from_slice(format!("{}:{part}", part.len()).as_bytes());
        }
        encoded.extend_from_slice(self.subject());
        encoded
    }
}

impl PartialEq for Key<'_> {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        self.digest() == other.digest() && self.subject() == other.subject()
    }
}

impl Eq for Key<'_> {}

impl PartialOrd for Key<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Key<'_> {
    /// An order that is the same in every process, for stores that lock keys one after the other.
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.digest()
            .cmp(&other.digest())
            .then_with(|| self.subject().cmp(other.subject()))
    }
}

impl std::hash::Hash for Key<'_> {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.digest().hash(state);
        self.subject().hash(state);
    }
}

impl fmt::Debug for Key<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({})", self.encode().escape_ascii())
    }
}

/// Joins the parts of a subject so that no two lists of parts join alike: `["a/b", "c"]` and `["a", "b/c"]` differ.
///
/// Each part stands with its length in decimal and a colon in front.
///
/// ```
/// use tollgate_core::join_subject;
///
/// assert_eq!(join_subject(["tenant", "user:7"]), b"6:tenant6:user:7");
/// ```
pub fn join_subject<P: AsRef<[u8]>>(parts: impl IntoIterator<Item = P>) -> Vec<u8> {
    let mut joined = Vec::new();
    for part in parts {
        let part = part.as_ref();
        joined.extend_from_slice(format!("{}:", part.len()).as_bytes());
        joined.extend_from_slice(part);
    }
    joined
}

#[cold]
fn empty_subject() -> Error {
    Error::new(
        ErrorKind::InvalidInput,
        "a subject has at least one byte; nobody to limit was named",
    )
}

fn first_half(hash: &[u8; 32]) -> u128 {
    hash.iter()
        .take(16)
        .fold(0, |digest, byte| digest << 8 | u128::from(*byte))
}
