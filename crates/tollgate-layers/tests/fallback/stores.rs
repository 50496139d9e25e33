//! A store that can be taken away, and keys to ask it for.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use futures::executor::block_on;
use tollgate_core::{
    Algorithm, Batch, Capabilities, Check, Cost, Error, ErrorKind, Key, ManualClock, Op, Policy,
    PolicyDecision, Quota, Result, Space, Store, Verdicts,
};
use tollgate_layers::{Fallback, Share};
use tollgate_memory::MemoryStore;

pub(crate) type Memory = MemoryStore<ManualClock>;
pub(crate) type Standing = Fallback<Switched, Memory>;

pub(crate) fn memory(clock: &ManualClock) -> Memory {
    MemoryStore::builder().clock(clock.clone()).build().unwrap()
}

/// How a store does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Health {
    Up,
    /// Nothing reaches it.
    Away,
    /// It does what it is asked, and nobody hears of it.
    Mute,
    /// As mute for what charges past the limit, and up for everything else.
    MuteToSettlements,
    /// It has new credentials.
    Refusing,
}

const STATES: [Health; 5] = [
    Health::Up,
    Health::Away,
    Health::Mute,
    Health::MuteToSettlements,
    Health::Refusing,
];

/// A memory store that many processes share, on a line that can be cut.
#[derive(Clone, Debug)]
pub(crate) struct Switched {
    pub(crate) store: Memory,
    health: Arc<AtomicU8>,
    calls: Arc<AtomicU64>,
    settled: Arc<AtomicU64>,
}

impl Switched {
    pub(crate) fn new(clock: &ManualClock) -> Self {
        Self::over(memory(clock))
    }

    /// A line of its own to a store that others reach by theirs.
    pub(crate) fn over(store: Memory) -> Self {
        Self {
            store,
            health: Arc::default(),
            calls: Arc::default(),
            settled: Arc::default(),
        }
    }

    pub(crate) fn set(&self, health: Health) {
        self.health.store(health as u8, Ordering::SeqCst);
    }

    fn health(&self) -> Health {
        STATES[usize::from(self.health.load(Ordering::SeqCst))]
    }

    /// Calls tried, whatever became of them.
    pub(crate) fn calls(&self) -> u64 {
        self.calls.load(Ordering::SeqCst)
    }

    /// Units that settlements have charged on top.
    pub(crate) fn settled(&self) -> u64 {
        self.settled.load(Ordering::SeqCst)
    }

    async fn carry_out(&self, batch: Batch<'_>) -> Result<Verdicts> {
        for check in batch.checks() {
            if let Op::Settle(settlement) = check.op {
                let more = settlement.actual.saturating_sub(settlement.charged.get());
                self.settled.fetch_add(more, Ordering::SeqCst);
            }
        }
        let answer = self.store.apply(batch).await;
        let_others_go_first().await;
        answer
    }
}

/// As a call in the network does.
async fn let_others_go_first() {
    let mut asked = false;
    std::future::poll_fn(|context| {
        if std::mem::replace(&mut asked, true) {
            return std::task::Poll::Ready(());
        }
        context.waker().wake_by_ref();
        std::task::Poll::Pending
    })
    .await;
}

impl Store for Switched {
    async fn apply<'a>(&'a self, batch: Batch<'a>) -> Result<Verdicts> {
        self.calls.fetch_add(1, Ordering::SeqCst);
        let_others_go_first().await;
        let lost = || Error::new(ErrorKind::Timeout, "no answer").with_charge_unknown();
        let settles = |check: &Check<'_>| matches!(check.op, Op::Settle(_));
        match self.health() {
            Health::Up => self.carry_out(batch).await,
            Health::Away => Err(Error::new(ErrorKind::Unavailable, "the line is cut")),
            Health::MuteToSettlements if !batch.checks().iter().any(settles) => {
                self.carry_out(batch).await
            }
            Health::Mute | Health::MuteToSettlements => {
                self.carry_out(batch).await?;
                Err(lost())
            }
            Health::Refusing => Err(Error::new(ErrorKind::Refused, "wrong password")),
        }
    }

    async fn reset<'a>(&'a self, keys: &'a [Key<'a>]) -> Result<u64> {
        let_others_go_first().await;
        match self.health() {
            Health::Up | Health::MuteToSettlements => self.store.reset(keys).await,
            _ => Err(Error::new(ErrorKind::Unavailable, "the line is cut")),
        }
    }

    fn capabilities(&self) -> Capabilities {
        self.store.capabilities()
    }
}

/// One process over `store`.
pub(crate) fn replica(store: &Switched, share: Share, clock: &ManualClock) -> Standing {
    Fallback::with_stand_in(store.clone(), share, memory(clock))
}

/// A clock, a store on a line, and one process that has a quarter of every limit.
pub(crate) fn setting() -> (ManualClock, Switched, Standing) {
    let clock = ManualClock::default();
    let store = Switched::new(&clock);
    let standing = replica(&store, Share::of(1, 4).unwrap(), &clock);
    (clock, store, standing)
}

/// A policy and the space of its keys, to ask a store without a limiter.
#[derive(Clone, Debug)]
pub(crate) struct Counter {
    pub(crate) policy: Policy,
    pub(crate) space: Space,
}

impl Counter {
    pub(crate) fn new(algorithm: Algorithm, quota: Quota) -> Self {
        Self::of(Policy::new("tested", algorithm, quota).unwrap())
    }

    pub(crate) fn of(policy: Policy) -> Self {
        let space = Space::new("", "", &policy);
        Self { policy, space }
    }

    pub(crate) fn key(&self) -> Key<'_> {
        Key::new(&self.space, b"someone").unwrap()
    }

    pub(crate) fn check(&self, op: Op) -> Check<'_> {
        Check {
            key: self.key(),
            policy: &self.policy,
            op,
        }
    }

    pub(crate) fn ask(&self, store: &impl Store, op: Op) -> Result<Verdicts> {
        block_on(store.apply(Batch::of_one(&self.check(op))))
    }

    pub(crate) fn hit(&self, store: &impl Store, units: u64) -> Verdicts {
        self.ask(store, hit(units)).unwrap()
    }

    /// How many hits of one unit are admitted in a row.
    pub(crate) fn drain(&self, store: &impl Store) -> u64 {
        let mut admitted = 0;
        while self.hit(store, 1).is_allowed() {
            admitted += 1;
        }
        admitted
    }

    /// What counts in `store`, in units.
    pub(crate) fn used(&self, store: &impl Store) -> u64 {
        let told = self.ask(store, peek(1)).unwrap();
        self.policy.rule().used(&told.as_slice()[0], told.at())
    }

    pub(crate) fn decision(&self, verdicts: &Verdicts, charged: bool) -> PolicyDecision<'_> {
        PolicyDecision::from_verdicts(&self.policy, verdicts, 0, Cost::ONE, charged)
    }
}

pub(crate) fn hit(units: u64) -> Op {
    Op::Hit(Cost::new(units).unwrap())
}

pub(crate) fn peek(units: u64) -> Op {
    Op::Peek(Cost::new(units).unwrap())
}
