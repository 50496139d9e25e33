//! A map of bytes that lets others in between a load and a swap.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use tollgate_core::{CasBackend, CasWrite, Clock, Key, Loaded, ManualClock, Result, Timestamp};

pub(crate) const START: u64 = 1_700_000_000_000_000;

/// What was last written under a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Written {
    pub(crate) value: Option<Vec<u8>>,
    pub(crate) expires_after: Duration,
}

#[derive(Debug)]
pub(crate) struct MapBackend {
    pub(crate) clock: ManualClock,
    values: Mutex<HashMap<Vec<u8>, Vec<u8>>>,
    writes: Mutex<Vec<Written>>,
    loads: AtomicU32,
    /// Somebody else is always quicker.
    pub(crate) always_late: AtomicBool,
    /// Answers one key too few.
    pub(crate) forgetful: AtomicBool,
}

impl MapBackend {
    pub(crate) fn new() -> Self {
        Self {
            clock: ManualClock::new(Timestamp::saturating_from_micros(START)),
            values: Mutex::default(),
            writes: Mutex::default(),
            loads: AtomicU32::new(0),
            always_late: AtomicBool::new(false),
            forgetful: AtomicBool::new(false),
        }
    }

    pub(crate) fn loads(&self) -> u32 {
        self.loads.load(Ordering::SeqCst)
    }

    pub(crate) fn writes(&self) -> Vec<Written> {
        self.writes.lock().expect("no test panics inside").clone()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.values
            .lock()
            .expect("no test panics inside")
            .is_empty()
    }

    /// Puts `value` under every key there is.
    pub(crate) fn overwrite(&self, value: &[u8]) {
        let mut values = self.values.lock().expect("no test panics inside");
        values
            .values_mut()
            .for_each(|stored| *stored = value.to_vec());
    }
}

impl CasBackend for MapBackend {
    async fn load<'a>(&'a self, keys: &'a [Key<'a>]) -> Result<Loaded> {
        self.loads.fetch_add(1, Ordering::SeqCst);
        let values = {
            let stored = self.values.lock().expect("no test panics inside");
            keys.iter()
                .map(|key| stored.get(&key.encode()).cloned())
                .collect::<Vec<_>>()
        };
        // Whoever runs now writes between this load and its swap.
        tokio::task::yield_now().await;
        let left_out = usize::from(self.forgetful.load(Ordering::SeqCst));
        Ok(Loaded {
            now: self.clock.now(),
            values: values[left_out..].to_vec(),
        })
    }

    async fn swap<'a>(&'a self, writes: &'a [CasWrite<'a>]) -> Result<bool> {
        if self.always_late.load(Ordering::SeqCst) {
            return Ok(false);
        }
        let mut stored = self.values.lock().expect("no test panics inside");
        if writes
            .iter()
            .any(|write| stored.get(&write.key.encode()) != write.expected.as_ref())
        {
            return Ok(false);
        }
        let mut written = self.writes.lock().expect("no test panics inside");
        for CasWrite {
            key,
            value,
            expires_after,
            ..
        } in writes.iter().cloned()
        {
            match value.clone() {
                Some(value) => stored.insert(key.encode(), value),
                None => stored.remove(&key.encode()),
            };
            written.push(Written {
                value,
                expires_after,
            });
        }
        Ok(true)
    }

    fn atomic_any_keys(&self) -> bool {
        true
    }
}
