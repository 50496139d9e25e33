//! A backend that does something to what passes through it.

use tollgate_core::{CasBackend, CasStore, CasWrite, Key, Loaded, Result};

use crate::map_harness::{MapBackend, MapHarness};

/// What is done to writes, and to what is loaded.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tricks {
    pub(crate) on_write: fn(&mut CasWrite<'_>),
    pub(crate) on_load: fn(&MapBackend, &[Key<'_>], &mut Loaded),
}

/// A backend without tricks.
pub(crate) const NONE: Tricks = Tricks {
    on_write: |_| {},
    on_load: |_, _, _| {},
};

#[derive(Debug)]
pub(crate) struct Tampering {
    inner: MapBackend,
    tricks: Tricks,
}

impl CasBackend for Tampering {
    async fn load<'a>(&'a self, keys: &'a [Key<'a>]) -> Result<Loaded> {
        let mut loaded = self.inner.load(keys).await?;
        (self.tricks.on_load)(&self.inner, keys, &mut loaded);
        Ok(loaded)
    }

    async fn swap<'a>(&'a self, writes: &'a [CasWrite<'a>]) -> Result<bool> {
        let mut writes = writes.to_vec();
        for write in &mut writes {
            // What is written must still be what was loaded, whatever was made of that on the way.
            write.expected = self.inner.entry(&write.key).map(|entry| entry.value);
            (self.tricks.on_write)(write);
        }
        self.inner.swap(&writes).await
    }

    fn atomic_any_keys(&self) -> bool {
        true
    }
}

macro_rules! tampered {
    ($tricks:expr) => {
        $crate::tampering::harness(|backend| $crate::tampering::store(backend, $tricks))
    };
}

pub(crate) use tampered;

pub(crate) fn harness(
    client: fn(MapBackend) -> CasStore<Tampering>,
) -> MapHarness<CasStore<Tampering>> {
    MapHarness::new("tampered", client)
}

pub(crate) const fn store(inner: MapBackend, tricks: Tricks) -> CasStore<Tampering> {
    CasStore::new(Tampering { inner, tricks })
}
