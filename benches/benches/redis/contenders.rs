//! What is measured.

use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use redis::aio::MultiplexedConnection;
use tollgate_core::{Algorithm, Limiter, Policy, Quota};
use tollgate_redis::{RedisStore, tollgate_core};
use tollgate_services::RedisServer;

/// A token bucket as one would write it by hand: one number of state, one key.
const BY_HAND: &str = r"
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local interval, burst, cost = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local arrival = tonumber(redis.call('GET', KEYS[1]) or now)
if arrival < now then
    arrival = now
end
local new = arrival + cost * interval
if new - now > burst * interval then
    return -1
end
redis.call('SET', KEYS[1], string.format('%.0f', new), 'PX', math.ceil((new - now) / 1000))
return math.floor((burst * interval - (new - now)) / interval)
";

/// The store's own script, called by hand.
const OWN: &str = concat!(
    include_str!("../../../crates/tollgate-redis/src/script/sliding_log.lua"),
    include_str!("../../../crates/tollgate-redis/src/script/batches.lua"),
    include_str!("../../../crates/tollgate-redis/src/script/main.lua"),
);

/// What the store asks it for one hit: one rule (a bucket of 60 000 000 per minute), and a run of one hit.
fn own_argument() -> Vec<u8> {
    let mut argument = vec![0; 8];
    argument.extend([1, 0, 1]);
    argument.extend(
        [60_000_000, 1, 60_000_000, 1, 1]
            .into_iter()
            .flat_map(u64::to_le_bytes),
    );
    argument.extend([5, 1, 0, 1, 0, 1, 0]);
    argument.extend(1u64.to_le_bytes());
    argument
}

/// How many subjects are hit.
#[derive(Clone, Copy)]
pub(crate) enum Subjects {
    One,
    Spread,
}

impl Subjects {
    fn name(self, hit: u64) -> String {
        match self {
            Self::One => "user:hot".to_owned(),
            Self::Spread => format!("user:{:06}", hit.wrapping_mul(2_654_435_761) % 100_000),
        }
    }
}

/// One way to count a hit.
#[derive(Clone)]
pub(crate) struct Contender {
    way: Way,
    subjects: Subjects,
}

#[derive(Clone)]
enum Way {
    Script(MultiplexedConnection, Arc<redis::Script>),
    Own(MultiplexedConnection, Arc<redis::Script>, Arc<[u8]>),
    Pool(deadpool_redis::Pool, Arc<redis::Script>),
    Increment(MultiplexedConnection),
    Tollgate(Arc<Limiter<RedisStore>>),
}

impl Contender {
    pub(crate) async fn hit(&self, hit: u64) -> Result<()> {
        let subject = self.subjects.name(hit);
        match &self.way {
            Way::Script(connection, script) => {
                let mut call = script.key(format!("bench:{{{subject}}}"));
                let _: i64 = call
                    .arg(1_000)
                    .arg(1_000_000)
                    .arg(1)
                    .invoke_async(&mut connection.clone())
                    .await?;
            }
            Way::Own(connection, script, argument) => {
                let mut call = script.key(format!("own:{{{subject}}}"));
                let answer: Vec<i64> = call
                    .arg(&argument[..])
                    .invoke_async(&mut connection.clone())
                    .await?;
                ensure!(answer.len() == 2, "{answer:?}");
            }
            Way::Pool(pool, script) => {
                let mut connection = pool.get().await?;
                let mut call = script.key(format!("bench:{{{subject}}}"));
                let _: i64 = call
                    .arg(1_000)
                    .arg(1_000_000)
                    .arg(1)
                    .invoke_async(&mut connection)
                    .await?;
            }
            Way::Increment(connection) => {
                let mut command = redis::cmd("INCR");
                command.arg(format!("bench:{{{subject}}}"));
                let _: i64 = command.query_async(&mut connection.clone()).await?;
            }
            Way::Tollgate(limiter) => {
                let decision = limiter.hit(&subject).await?;
                ensure!(!decision.is_degraded(), "{:?}", decision.error());
            }
        }
        Ok(())
    }
}

fn limiter(
    connection: &MultiplexedConnection,
    algorithm: Algorithm,
) -> Result<Arc<Limiter<RedisStore>>> {
    let policy = Policy::new("bench", algorithm, Quota::per_minute(60_000_000))?;
    Ok(Arc::new(Limiter::new(
        RedisStore::new(connection.clone()),
        policy,
    )))
}

/// Contenders that call a script.
pub(crate) struct Script {
    connection: MultiplexedConnection,
    pool: deadpool_redis::Pool,
    by_hand: Arc<redis::Script>,
    limiter: Arc<Limiter<RedisStore>>,
}

impl Script {
    pub(crate) async fn new(server: &RedisServer) -> Result<Self> {
        let connection = connect(server).await?;
        let pool = deadpool_redis::Config::from_url(server.url())
            .builder()
            .context("a pool")?
            .max_size(16)
            .build()?;
        let limiter = limiter(&connection, Algorithm::TokenBucket)?;
        Ok(Self {
            connection,
            pool,
            by_hand: Arc::new(redis::Script::new(BY_HAND)),
            limiter,
        })
    }

    pub(crate) fn by_hand(&self, subjects: Subjects) -> Contender {
        let way = Way::Script(self.connection.clone(), self.by_hand.clone());
        Contender { way, subjects }
    }

    pub(crate) fn pooled(&self, subjects: Subjects) -> Contender {
        Contender {
            way: Way::Pool(self.pool.clone(), self.by_hand.clone()),
            subjects,
        }
    }

    pub(crate) fn bare(&self, subjects: Subjects) -> Contender {
        let script = Arc::new(redis::Script::new(OWN));
        let way = Way::Own(self.connection.clone(), script, own_argument().into());
        Contender { way, subjects }
    }

    pub(crate) fn tollgate(&self, subjects: Subjects) -> Contender {
        Contender {
            way: Way::Tollgate(self.limiter.clone()),
            subjects,
        }
    }
}

/// Contenders that count in a counter of the server's own.
pub(crate) struct Counters {
    connection: MultiplexedConnection,
    limiter: Arc<Limiter<RedisStore>>,
}

impl Counters {
    pub(crate) async fn new(server: &RedisServer) -> Result<Self> {
        let connection = connect(server).await?;
        let limiter = limiter(&connection, Algorithm::FixedWindow)?;
        Ok(Self {
            connection,
            limiter,
        })
    }

    pub(crate) fn bare(&self, subjects: Subjects) -> Contender {
        Contender {
            way: Way::Increment(self.connection.clone()),
            subjects,
        }
    }

    pub(crate) fn tollgate(&self, subjects: Subjects) -> Contender {
        Contender {
            way: Way::Tollgate(self.limiter.clone()),
            subjects,
        }
    }
}

async fn connect(server: &RedisServer) -> Result<MultiplexedConnection> {
    let config = redis::AsyncConnectionConfig::new()
        .set_response_timeout(Some(std::time::Duration::from_secs(30)));
    let client = redis::Client::open(server.url())?;
    Ok(client
        .get_multiplexed_async_connection_with_config(&config)
        .await?)
}
