//! The script, and how it is called.

use redis::Cmd;

/// By its hash, or with its text for a server that does not know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum How {
    Hash,
    Text,
}

/// The script's text and its hash, worked out once per store.
#[derive(Debug)]
pub(crate) struct Script {
    hash: String,
}

const TEXT: &str = concat!(
    include_str!("script/sliding_log.lua"),
    include_str!("script/batches.lua"),
    include_str!("script/main.lua"),
);

impl Script {
    pub(crate) fn new() -> Self {
        Self {
            hash: redis::Script::new(TEXT).get_hash().to_owned(),
        }
    }

    /// The beginning of the command; the number of keys, the keys and the argument follow.
    pub(crate) fn command(&self, how: How) -> Cmd {
        match how {
            How::Hash => {
                let mut command = redis::cmd("EVALSHA");
                command.arg(&self.hash);
                command
            }
            How::Text => {
                let mut command = redis::cmd("EVAL");
                command.arg(TEXT);
                command
            }
        }
    }
}
