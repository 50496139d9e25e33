//! Partition keys: which counter a response speaks of.

use bytes::Bytes;
use sha2::{Digest, Sha256};

/// How the parameter `pk` is made from the subject (the draft's sections 3.1.4 and 6.1).
///
/// It lets a client with several identities tell their counters apart. What is sent travels with the response: through
/// proxies, and into logs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PartitionKey {
    /// No `pk`.
    #[default]
    Hidden,
    /// The first 16 bytes of the subject's SHA-256.
    ///
    /// A client that knows its subject can work it out. So can anybody who guesses the subject: a hash does not hide an
    /// address.
    Digest,
    /// The subject's bytes as they are; its SHA-256 if there are more than [256](tollgate_core::Key::MAX_SUBJECT).
    ///
    /// Not for subjects that are secrets, such as API keys.
    Subject,
}

impl PartitionKey {
    pub(crate) fn of(self, subject: &[u8]) -> Option<Bytes> {
        match self {
            Self::Hidden => None,
            Self::Subject if subject.len() <= tollgate_core::Key::MAX_SUBJECT => {
                Some(Bytes::copy_from_slice(subject))
            }
            Self::Subject => Some(Bytes::copy_from_slice(&Sha256::digest(subject))),
            Self::Digest => Some(Bytes::copy_from_slice(&Sha256::digest(subject)[..16])),
        }
    }
}
