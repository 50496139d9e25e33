//! The faults.

use std::num::NonZeroU64;
use std::time::Duration;

/// What the proxy does to connections and to the bytes that pass.
///
/// A fault holds for connections that are open and for those that come, unless it says otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fault {
    /// Everything passes as it comes.
    #[default]
    None,
    /// Everything passes in order, that much later. What is under way when the fault ends keeps its delay.
    Latency {
        /// From clients to the server.
        to_server: Duration,
        /// From the server to clients.
        to_client: Duration,
    },
    /// Nobody listens: the system refuses new connections. Those that are open go on.
    Refuse,
    /// Connections are accepted and stay open, and nothing passes, not even that a peer has closed. What was held back
    /// passes when the fault ends.
    Silence,
    /// Each connection passes that many more bytes from the server, then is closed.
    Truncate {
        /// Counted per connection, from the moment the fault began.
        after: u64,
    },
    /// In what the server sends, every so many bytes one has the bits of `mask` flipped: always the same ones.
    Garble {
        /// The first byte from the moment the fault began is flipped, and then every one this much further on.
        every: NonZeroU64,
        /// The bits to flip.
        mask: u8,
    },
}

/// A fault, and which one it is, so that a connection notices the same fault set again.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Setting {
    pub(crate) fault: Fault,
    pub(crate) number: u64,
}

/// How far one connection's replies have come under the present setting.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    number: u64,
    passed: u64,
}

impl Progress {
    /// Does to `bytes` what `setting` says. Returns `true` if they are the connection's last.
    pub(crate) fn apply(&mut self, setting: Setting, bytes: &mut Vec<u8>) -> bool {
        if self.number != setting.number {
            *self = Self {
                number: setting.number,
                passed: 0,
            };
        }
        let start = self.passed;
        match setting.fault {
            Fault::Truncate { after } => {
                let left = usize::try_from(after.saturating_sub(start)).unwrap_or(usize::MAX);
                let is_last = bytes.len() >= left;
                bytes.truncate(left);
                self.passed += length(bytes);
                return is_last;
            }
            Fault::Garble { every, mask } => {
                for (place, byte) in (start..).zip(bytes.iter_mut()) {
                    if place % every == 0 {
                        *byte ^= mask;
                    }
                }
            }
            Fault::None | Fault::Latency { .. } | Fault::Refuse | Fault::Silence => {}
        }
        self.passed += length(bytes);
        false
    }
}

pub(crate) fn length(bytes: &[u8]) -> u64 {
    u64::try_from(bytes.len()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn setting(fault: Fault, number: u64) -> Setting {
        Setting { fault, number }
    }

    #[test]
    fn truncation_counts_over_all_chunks_and_anew_when_set_again() {
        let mut progress = Progress::default();
        for number in [1, 2] {
            let truncate = setting(Fault::Truncate { after: 5 }, number);
            let mut bytes = b"abc".to_vec();
            assert!(!progress.apply(truncate, &mut bytes));
            assert_eq!(bytes, b"abc");
            let mut bytes = b"defg".to_vec();
            assert!(progress.apply(truncate, &mut bytes));
            assert_eq!(bytes, b"de");
        }
    }

    #[test]
    fn the_same_bytes_are_garbled_however_they_are_cut_into_chunks() {
        let every = NonZeroU64::new(3).unwrap();
        let garble = setting(Fault::Garble { every, mask: 0x80 }, 1);
        let mut whole = vec![0; 8];
        assert!(!Progress::default().apply(garble, &mut whole));
        assert_eq!(whole, [0x80, 0, 0, 0x80, 0, 0, 0x80, 0]);
        let mut progress = Progress::default();
        let mut pieces = Vec::new();
        for length in [1, 4, 3] {
            let mut piece = vec![0; length];
            progress.apply(garble, &mut piece);
            pieces.extend(piece);
        }
        assert_eq!(pieces, whole);
    }
}
