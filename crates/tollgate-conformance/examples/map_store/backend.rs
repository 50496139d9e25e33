//! A whole backend for `CasStore`: a map under a lock that stands for a server.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tollgate_core::{
    CasBackend, CasWrite, Clock, Error, ErrorKind, Key, Loaded, Result, SystemClock,
};

/// A client of a map that stands for a server. Clones are clients of the same one.
#[derive(Clone, Debug, Default)]
pub(crate) struct MapBackend {
    server: Arc<Server>,
}

#[derive(Debug, Default)]
struct Server {
    entries: Mutex<HashMap<Vec<u8>, Entry>>,
    away: AtomicBool,
}

/// What the server holds under a key.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    /// The bytes that the store wrote.
    pub(crate) value: Vec<u8>,
    /// When the server may drop them; `None` if its clock never gets there.
    pub(crate) expires: Option<Instant>,
}

impl Entry {
    fn is_live(&self, now: Instant) -> bool {
        self.expires.is_none_or(|expires| now < expires)
    }
}

impl CasBackend for MapBackend {
    async fn load<'a>(&'a self, keys: &'a [Key<'a>]) -> Result<Loaded> {
        let entries = self.connect()?;
        let now = Instant::now();
        let value_of = |key: &Key<'_>| {
            let entry = entries.get(&key.encode())?;
            entry.is_live(now).then(|| entry.value.clone())
        };
        Ok(Loaded {
            now: SystemClock.now(),
            values: keys.iter().map(value_of).collect(),
        })
    }

    async fn swap<'a>(&'a self, writes: &'a [CasWrite<'a>]) -> Result<bool> {
        let mut entries = self.connect()?;
        let now = Instant::now();
        let is_as_expected = |write: &CasWrite<'_>| {
            let entry = entries.get(&write.key.encode());
            let held = entry.filter(|entry| entry.is_live(now));
            held.map(|entry| &entry.value) == write.expected.as_ref()
        };
        if !writes.iter().all(is_as_expected) {
            return Ok(false);
        }
        for write in writes {
            let key = write.key.encode();
            match &write.value {
                None => entries.remove(&key),
                Some(value) => entries.insert(
                    key,
                    Entry {
                        value: value.clone(),
                        expires: now.checked_add(write.expires_after),
                    },
                ),
            };
        }
        Ok(true)
    }

    fn atomic_any_keys(&self) -> bool {
        true
    }
}

impl MapBackend {
    /// The lock of the map: what the connection would be to a server.
    fn connect(&self) -> Result<MutexGuard<'_, HashMap<Vec<u8>, Entry>>> {
        if self.server.away.load(Ordering::SeqCst) {
            let error = Error::new(ErrorKind::Unavailable, "the map is away; try again later");
            return Err(error.with_store("map"));
        }
        Ok(self.entries())
    }

    fn entries(&self) -> MutexGuard<'_, HashMap<Vec<u8>, Entry>> {
        let entries = self.server.entries.lock();
        entries.unwrap_or_else(PoisonError::into_inner)
    }

    /// Frees what has expired. A server does this by itself, now and then; no answer depends on it.
    pub(crate) fn sweep(&self) {
        let now = Instant::now();
        self.entries().retain(|_, entry| entry.is_live(now));
    }

    /// What the server holds under `key`, without the store.
    pub(crate) fn entry(&self, key: &Key<'_>) -> Option<Entry> {
        let now = Instant::now();
        let entry = self.entries().get(&key.encode()).cloned();
        entry.filter(|entry| entry.is_live(now))
    }

    /// Puts `value` under `key` behind the store's back; `expires_after` of `None` keeps it for ever.
    pub(crate) fn put(&self, key: &Key<'_>, value: Vec<u8>, expires_after: Option<Duration>) {
        let expires = expires_after.map(|after| Instant::now() + after);
        self.entries()
            .insert(key.encode(), Entry { value, expires });
    }

    /// Takes the server away, or brings it back with all it held.
    pub(crate) fn set_away(&self, away: bool) {
        self.server.away.store(away, Ordering::SeqCst);
    }
}
