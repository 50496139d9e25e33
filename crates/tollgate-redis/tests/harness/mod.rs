//! How the store is brought to the kit: over one server, over a cluster, over sentinels.
#![allow(dead_code, reason = "each test program uses its own part of this")]

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use redis::aio::{ConnectionManager, ConnectionManagerConfig};
use redis::{Cmd, FromRedisValue};
use tollgate_conformance::{BoxError, Harness, Held, Offer, Offered, Outage, Plant};
use tollgate_core::{Key, State, Timestamp};
use tollgate_redis::{Connection, RedisStore, redis, tollgate_core};
use tollgate_services::{RedisProgram, RedisServer};

/// Servers that stores connect to, and a way to look behind the stores.
pub(crate) trait Servers: Send + Sync + Sized + 'static {
    fn start(program: RedisProgram) -> Result<Self, BoxError>;

    /// A connection that waits for an answer no longer than `patience`.
    fn connect(&self, patience: Duration) -> Result<Connection, BoxError>;

    fn query<T: FromRedisValue + Send>(
        &self,
        command: Cmd,
    ) -> impl Future<Output = Result<T, BoxError>> + Send;

    fn nodes(&self) -> Vec<&RedisServer>;
}

/// A harness over servers of one kind, which all cases share.
pub(crate) struct Shared<S> {
    name: &'static str,
    program: RedisProgram,
    servers: OnceLock<S>,
}

pub(crate) type Single = Shared<RedisServer>;
#[cfg(feature = "cluster")]
pub(crate) type Cluster = Shared<cluster::Cluster>;
#[cfg(feature = "sentinel")]
pub(crate) type Sentinel = Shared<sentinel::Sentinel>;

impl<S: Servers> Shared<S> {
    pub(crate) const fn over(name: &'static str, program: RedisProgram) -> Self {
        Self {
            name,
            program,
            servers: OnceLock::new(),
        }
    }

    fn servers(&self) -> Result<&S, BoxError> {
        if let Some(servers) = self.servers.get() {
            return Ok(servers);
        }
        // Cases run one after the other, so nobody else starts them meanwhile.
        let servers = S::start(self.program)?;
        Ok(self.servers.get_or_init(|| servers))
    }
}

impl Single {
    pub(crate) const fn new(name: &'static str, program: RedisProgram) -> Self {
        Self::over(name, program)
    }
}

/// What the script writes for a state, as it was first published: version and family, then numbers of eight bytes.
fn version_one(state: &State) -> Vec<u8> {
    let (family, numbers) = match state {
        State::Bucket(bucket) => (
            1,
            vec![bucket.updated.as_micros(), bucket.level, bucket.unit],
        ),
        State::FixedWindow(window) => (2, vec![window.start.as_micros(), window.count, 0]),
        State::SlidingWindow(windows) => (
            3,
            vec![windows.start.as_micros(), windows.count, windows.previous],
        ),
        State::SlidingLog(log) => {
            let size = u64::try_from(log.hits().len()).unwrap_or(u64::MAX);
            let mut numbers = vec![size, 0, 0];
            let mut total = 0;
            for (at, units) in log.hits() {
                total += units;
                numbers.extend([at.as_micros(), total]);
            }
            (4, numbers)
        }
    };
    let mut bytes = vec![1, family];
    bytes.extend(numbers.into_iter().flat_map(u64::to_le_bytes));
    bytes
}

impl<S: Servers> Harness for Shared<S> {
    type Store = RedisStore;

    fn name(&self) -> &str {
        self.name
    }

    async fn store(&self) -> Result<RedisStore, BoxError> {
        Ok(RedisStore::new(self.servers()?.connect(LONG)?))
    }

    async fn peer(&self, _: &RedisStore) -> Offered<RedisStore> {
        Ok(Offer::Given(self.store().await?))
    }

    async fn backend_time(&self, _: &RedisStore) -> Offered<Timestamp> {
        let (seconds, micros): (u64, u64) = self.servers()?.query(redis::cmd("TIME")).await?;
        Ok(Offer::Given(Timestamp::from_micros(
            seconds * 1_000_000 + micros,
        )?))
    }

    async fn held(&self, _: &RedisStore, key: &Key<'_>) -> Offered<Held> {
        for name in RedisStore::redis_keys(key) {
            let mut command = redis::cmd("PTTL");
            command.arg(name);
            match self.servers()?.query::<i64>(command).await? {
                -2 => {}
                -1 => return Ok(Offer::Given(Held::ForGood)),
                millis => {
                    // A read finds the key until its last millisecond is over.
                    let lives = Duration::from_millis(u64::try_from(millis)? + 1);
                    return Ok(Offer::Given(Held::For(lives)));
                }
            }
        }
        Ok(Offer::Given(Held::Nothing))
    }

    async fn lose_expiry(&self, _: &RedisStore, key: &Key<'_>) -> Offered<()> {
        for name in RedisStore::redis_keys(key) {
            let mut command = redis::cmd("PERSIST");
            command.arg(name);
            self.servers()?.query::<i64>(command).await?;
        }
        Ok(Offer::Given(()))
    }

    async fn plant(&self, _: &RedisStore, key: &Key<'_>, plant: Plant<'_>) -> Offered<()> {
        let value = match plant {
            Plant::VersionOne(state) => version_one(state),
            Plant::LaterVersion(state) => {
                let mut value = version_one(state);
                value[0] = 2;
                value
            }
            Plant::Torn(state) => {
                let value = version_one(state);
                value[..value.len() / 2].to_vec()
            }
            _ => return Ok(Offer::NotOffered),
        };
        let mut command = redis::cmd("SET");
        command.arg(&RedisStore::redis_keys(key)[0]).arg(value);
        command.arg("EX").arg(3_600);
        self.servers()?.query::<()>(command).await?;
        Ok(Offer::Given(()))
    }

    async fn outage(&self) -> Offered<Outage<RedisStore>> {
        let servers = Arc::new(S::start(self.program)?);
        let store = RedisStore::new(servers.connect(SHORT)?);
        let signal = |name: &'static str| {
            let servers = servers.clone();
            move || {
                let servers = servers.clone();
                async move {
                    for node in servers.nodes() {
                        node.process().signal(name)?;
                    }
                    Ok(())
                }
            }
        };
        Ok(Offer::Given(Outage::new(
            store,
            signal("STOP"),
            signal("CONT"),
        )))
    }
}

/// A busy machine is no failure.
const LONG: Duration = Duration::from_secs(10);
/// What applications wait, give or take.
const SHORT: Duration = Duration::from_millis(500);

fn manager(server: &RedisServer, patience: Duration) -> Result<ConnectionManager, BoxError> {
    let client = redis::Client::open(server.url())?;
    let config = ConnectionManagerConfig::new().set_response_timeout(Some(patience));
    Ok(ConnectionManager::new_lazy_with_config(client, config)?)
}

impl Servers for RedisServer {
    fn start(program: RedisProgram) -> Result<Self, BoxError> {
        Ok(Self::start(program)?)
    }

    fn connect(&self, patience: Duration) -> Result<Connection, BoxError> {
        Ok(manager(self, patience)?.into())
    }

    async fn query<T: FromRedisValue + Send>(&self, command: Cmd) -> Result<T, BoxError> {
        Ok(command.query_async(&mut manager(self, LONG)?).await?)
    }

    fn nodes(&self) -> Vec<&RedisServer> {
        vec![self]
    }
}

#[cfg(feature = "cluster")]
mod cluster {
    use redis::cluster::{ClusterClient, ClusterClientBuilder};
    use tollgate_services::RedisCluster;

    use super::{
        BoxError, Cmd, Connection, Duration, FromRedisValue, LONG, RedisProgram, RedisServer,
        Servers, Shared, redis,
    };

    pub(crate) struct Cluster(RedisCluster);

    impl Cluster {
        fn client(&self, patience: Duration) -> Result<ClusterClient, BoxError> {
            let builder = ClusterClientBuilder::new(self.0.urls()).retries(0);
            Ok(builder.response_timeout(patience).build()?)
        }
    }

    impl Shared<Cluster> {
        pub(crate) const fn new() -> Self {
            Self::over("redis-cluster", RedisProgram::System)
        }
    }

    impl Servers for Cluster {
        fn start(program: RedisProgram) -> Result<Self, BoxError> {
            Ok(Self(RedisCluster::start(program)?))
        }

        fn connect(&self, patience: Duration) -> Result<Connection, BoxError> {
            Ok(self.client(patience)?.into())
        }

        async fn query<T: FromRedisValue + Send>(&self, command: Cmd) -> Result<T, BoxError> {
            let mut connection = self.client(LONG)?.get_async_connection().await?;
            Ok(command.query_async(&mut connection).await?)
        }

        fn nodes(&self) -> Vec<&RedisServer> {
            self.0.nodes().iter().collect()
        }
    }
}

#[cfg(feature = "sentinel")]
mod sentinel {
    use redis::AsyncConnectionConfig;
    use redis::sentinel::{SentinelClient, SentinelServerType};
    use tollgate_services::RedisSentinel;

    use super::{
        BoxError, Cmd, Connection, Duration, FromRedisValue, LONG, RedisProgram, RedisServer,
        Servers, Shared, manager, redis,
    };

    pub(crate) struct Sentinel(RedisSentinel);

    impl Shared<Sentinel> {
        pub(crate) const fn new() -> Self {
            Self::over("redis-sentinel", RedisProgram::System)
        }
    }

    impl Servers for Sentinel {
        fn start(program: RedisProgram) -> Result<Self, BoxError> {
            let group = RedisSentinel::start(program)?;
            // No case wants a failover. On a busy machine a server may well be silent for as long as one takes.
            group.set_down_after(Duration::from_secs(60))?;
            Ok(Self(group))
        }

        fn connect(&self, patience: Duration) -> Result<Connection, BoxError> {
            let name = RedisSentinel::MASTER.to_owned();
            let master = SentinelServerType::Master;
            let client = SentinelClient::build(self.0.urls(), name, None, master)?;
            let config = AsyncConnectionConfig::new().set_response_timeout(Some(patience));
            Ok(Connection::sentinel_with_config(client, config))
        }

        async fn query<T: FromRedisValue + Send>(&self, command: Cmd) -> Result<T, BoxError> {
            // The first server stays the master.
            Ok(command
                .query_async(&mut manager(&self.0.servers()[0], LONG)?)
                .await?)
        }

        fn nodes(&self) -> Vec<&RedisServer> {
            self.0.servers().iter().collect()
        }
    }
}
