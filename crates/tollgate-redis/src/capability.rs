//! Whether the server has INCREX.

use std::sync::atomic::{AtomicU8, Ordering};

use redis::Value;

use crate::connection::Connection;
use crate::error::Failure;

/// Whether the server has INCREX: asked once, and again after trouble, since another server may answer then.
#[derive(Debug, Default)]
pub(crate) struct Capability(AtomicU8);

const UNKNOWN: u8 = 0;
const ABSENT: u8 = 1;
const PRESENT: u8 = 2;
/// The server is not asked, whatever it has.
const UNUSED: u8 = 3;

impl Capability {
    /// Does without, whatever the server has.
    pub(crate) const fn unused() -> Self {
        Self(AtomicU8::new(UNUSED))
    }

    /// Whether the server has INCREX.
    ///
    /// A server that cannot be reached has not said no: then the call fails, and the next one asks again.
    pub(crate) async fn ask(&self, connection: &Connection) -> Result<bool, Failure> {
        match self.0.load(Ordering::Acquire) {
            UNKNOWN => {}
            known => return Ok(known == PRESENT),
        }
        let mut command = redis::cmd("COMMAND");
        command.arg("INFO").arg("INCREX");
        let present = match connection.query(&command).await {
            Ok(Value::Array(infos)) => infos.iter().any(|info| matches!(info, Value::Array(_))),
            Ok(_) => false,
            Err(failure) if failure.is_no_permission() => false,
            Err(failure) => return Err(failure),
        };
        let way = if present { "INCREX" } else { "the script" };
        tracing::info!("fixed windows are counted by {way}");
        let learned = if present { PRESENT } else { ABSENT };
        self.0.store(learned, Ordering::Release);
        Ok(present)
    }

    /// Asks again before the next call.
    pub(crate) fn forget(&self) {
        // It fails only for a server that is not asked at all.
        let _ = self
            .0
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |known| {
                (known != UNUSED).then_some(UNKNOWN)
            });
    }
}
