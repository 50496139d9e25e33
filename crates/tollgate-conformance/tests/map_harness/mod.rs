//! A harness with every hook there is, for stores over a map that stands for a server.

#[path = "../../examples/map_store/backend.rs"]
mod backend;

use std::time::{Duration, Instant};

pub(crate) use backend::MapBackend;
use tollgate_conformance::{BoxError, Harness, Held, Offer, Offered, Outage, Plant};
use tollgate_core::{Clock, Key, State, Store, SystemClock, Timestamp};

/// All cases share one map, as those of a real server share the server.
pub(crate) struct MapHarness<S> {
    name: &'static str,
    server: MapBackend,
    client: fn(MapBackend) -> S,
}

impl<S: Store> MapHarness<S> {
    /// `client` makes a store of a connection.
    pub(crate) fn new(name: &'static str, client: fn(MapBackend) -> S) -> Self {
        Self {
            name,
            server: MapBackend::default(),
            client,
        }
    }
}

impl<S: Store> Harness for MapHarness<S> {
    type Store = S;

    fn name(&self) -> &str {
        self.name
    }

    async fn store(&self) -> Result<S, BoxError> {
        Ok((self.client)(self.server.clone()))
    }

    async fn peer(&self, _: &S) -> Offered<S> {
        Ok(Offer::Given((self.client)(self.server.clone())))
    }

    async fn backend_time(&self, _: &S) -> Offered<Timestamp> {
        Ok(Offer::Given(SystemClock.now()))
    }

    async fn held(&self, _: &S, key: &Key<'_>) -> Offered<Held> {
        self.server.sweep();
        let held = self.server.entry(key).map(|entry| entry.expires);
        Ok(Offer::Given(match held {
            None => Held::Nothing,
            Some(None) => Held::ForGood,
            Some(Some(expires)) => Held::For(expires.saturating_duration_since(Instant::now())),
        }))
    }

    async fn lose_expiry(&self, _: &S, key: &Key<'_>) -> Offered<()> {
        let entry = self.server.entry(key).ok_or("nothing is held")?;
        self.server.put(key, entry.value, None);
        Ok(Offer::Given(()))
    }

    async fn plant(&self, _: &S, key: &Key<'_>, plant: Plant<'_>) -> Offered<()> {
        let value = match plant {
            Plant::VersionOne(state) => version_one(state),
            Plant::LaterVersion(state) => {
                let mut value = version_one(state);
                value[0] = 2;
                value
            }
            Plant::Torn(state) => {
                let mut value = version_one(state);
                value.truncate(value.len() - 3);
                value
            }
            _ => return Ok(Offer::NotOffered),
        };
        let an_hour = Duration::from_secs(3_600);
        self.server.put(key, value, Some(an_hour));
        Ok(Offer::Given(()))
    }

    async fn outage(&self) -> Offered<Outage<S>> {
        let server = MapBackend::default();
        let (leaving, returning) = (server.clone(), server.clone());
        Ok(Offer::Given(Outage::new(
            (self.client)(server),
            move || {
                leaving.set_away(true);
                std::future::ready(Ok(()))
            },
            move || {
                returning.set_away(false);
                std::future::ready(Ok(()))
            },
        )))
    }
}

/// The first published format, written out: the byte 1, a letter, numbers of eight bytes with the lowest first.
fn version_one(state: &State) -> Vec<u8> {
    let (letter, numbers) = match state {
        State::Bucket(bucket) => (
            b'b',
            vec![bucket.updated.as_micros(), bucket.level, bucket.unit],
        ),
        State::FixedWindow(window) => (b'f', vec![window.start.as_micros(), window.count]),
        State::SlidingWindow(windows) => (
            b'w',
            vec![windows.start.as_micros(), windows.count, windows.previous],
        ),
        State::SlidingLog(log) => (
            b'l',
            log.hits()
                .flat_map(|(at, units)| [at.as_micros(), units])
                .collect(),
        ),
    };
    let mut bytes = vec![1, letter];
    for number in numbers {
        bytes.extend_from_slice(&number.to_le_bytes());
    }
    bytes
}
