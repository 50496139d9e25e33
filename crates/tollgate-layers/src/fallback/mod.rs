//! A local store that stands in while the real one is away.

mod hand_back;
mod ledger;
mod share;
mod shares;
mod stand_in;

use tollgate_core::{Batch, Capabilities, InProcessStore, Key, Result, Source, Store, Verdicts};
use tollgate_memory::MemoryStore;

pub use share::Share;

use ledger::Ledger;
use shares::Shares;
use stand_in::StandIn;

/// A store in whose place a local one judges while it is away, by a share of every limit.
///
/// Put it around a [`Store`] that may be out of reach. As long as the store answers, nothing changes: its denials are
/// final, and the stand-in hears of nothing.
///
/// # What is promised
///
/// **While the store is away, this process admits no more than its share.** The stand-in is an exact store that
/// enforces the same algorithm with the quota that [`Share`] says. Decisions tell its truth: `limit` and `remaining` are
/// those of the share, `retry_after` is when the stand-in admits, and they say [`Source::Fallback`]. Where the shares of
/// all processes add up to one, the stand-ins together keep the bound that the algorithm keeps with the whole limit
/// (but for limits so small that a share of them is less than one unit, see [`Share`]).
///
/// **Over an outage, a key gets its limit once more at most.** What the store has charged before the outage is not known
/// to the stand-in. So the bound of any one window, or of a bucket over any time, is kept by the store and by the
/// stand-ins together, each for what they admit: at most the limit before and the shares of it during.
///
/// **On return there is no burst.** What the stand-in charged is remembered, and the first call for a key that reaches
/// the store again charges it there, before anything else and even past the limit, as far as it still counts. So
/// the store admits a hit only if it fits beside what has been charged there, and what this process had admitted in the
/// outage:
/// - of a sliding log, in no period that ends after the return is more than the limit admitted by the store and by
///   those stand-ins whose charges have been handed back;
/// - of a window aligned to the calendar, in no window; of other windows, in no window of the store, to which the units
///   are charged when they are handed back, so that they may count for up to one period longer;
/// - a sliding window counts them as charged when they were handed back, and estimates as it always does;
/// - a bucket keeps its bound (the burst, and the refill) over any time that begins in the outage.
///
/// Debts are handed back by the process that has them, with its next call for the key. Until then other processes do
/// not see them: what they are admitted meanwhile may be up to that share more.
///
/// **A debt is paid once**, however many calls race. The others wait for the payment, or judge by the stand-in if it
/// fails. Whether the store is back is asked by a peek first. A payment that certainly charged nothing stays owed. One
/// that may have charged counts as paid, also if its call is dropped: a debt that is forgotten admits one share too
/// much, while one that is paid with every call that comes late would lock the key for as long as the store is slow.
///
/// **Nothing is charged twice without reason, and sometimes for one.** A hit that the store may have charged before it
/// failed is charged by the stand-in as well, and handed back later: the client gets less, never more.
///
/// # When the stand-in judges
///
/// On [transient](tollgate_core::ErrorKind::is_transient) errors only: those end by themselves, and so does the
/// stand-in. Any other error passes. Wrong credentials or a corrupt state stay until somebody acts, and somebody acts
/// on errors; behind a stand-in a service would go on for weeks with limits by the process. What a limiter answers then
/// is its [`FailureMode`](tollgate_core::FailureMode).
///
/// A check whose failure mode is `Closed` is not judged: the error passes, and the limiter denies the whole batch. One
/// whose mode is `Open` is admitted as if its key had never been seen, and the rest of its batch is judged without it; if
/// nothing is left to judge, the error passes and the limiter admits. With `Fallback`, or where neither policy nor limiter
/// say, the stand-in judges.
///
/// # Settling and resetting
///
/// A receipt of the stand-in ([`Batch::charged_by`]) corrects the stand-in's charge and the debt until that is handed
/// back, and the store's charge after that. Handed back, a bucket's units are given back as if they had entered it when
/// the stand-in charged them; a window's only if the store's window began before that; a sliding log's not at all. What
/// the store has charged cannot be settled while it is away: the error passes.
///
/// A reset forgets the stand-in's state and the debt as well, also where the store's error says that it could not be told,
/// or where the call is dropped. A payment that was not sent by then is called off; one that is on its way to the store may
/// arrive after the reset.
///
/// # Bounds
///
/// At most [`max_debts`](Self::max_debts) keys are remembered as owing. Charges to further ones are not handed back; the
/// counter `tollgate_fallback_debts_forgotten_total` tells how often, and the gauge `tollgate_fallback_debts` how many keys
/// owe now, both with the label `store`. Debts that count no more are let go. While no key owes anything, a call costs
/// one more look at a number.
///
/// The time a call may take and how often a dead store is tried are not this wrapper's business: put it around a
/// timeout and a breaker.
///
/// ```
/// use tollgate_layers::{Fallback, Share};
/// use tollgate_memory::{Limiter, MemoryStore, Quota};
///
/// // A memory store never fails. Think of one in the network, and of four processes.
/// let store = Fallback::new(MemoryStore::new(), Share::of(1, 4)?);
/// let limiter = Limiter::new(store, Quota::per_minute(100));
/// # Ok::<(), tollgate_memory::Error>(())
/// ```
#[derive(Debug)]
pub struct Fallback<S, L = MemoryStore> {
    store: S,
    stand_in: StandIn<L>,
}

impl<S: Store> Fallback<S> {
    /// Lets a memory store enforce `share` of every limit while `store` is away.
    #[must_use]
    pub fn new(store: S, share: Share) -> Self {
        Self::with_stand_in(store, share, MemoryStore::new())
    }
}

impl<S: Store, L: InProcessStore> Fallback<S, L> {
    /// The most keys whose debts are remembered unless set.
    pub const MAX_DEBTS: usize = 100_000;

    /// Lets `local` enforce `share` of every limit while `store` is away.
    ///
    /// `local` is for this alone: what others charge there would count as charged in the place of `store`.
    #[must_use]
    pub fn with_stand_in(store: S, share: Share, local: L) -> Self {
        Self {
            store,
            stand_in: StandIn {
                local,
                shares: Shares::new(share),
                ledger: Ledger::new(Self::MAX_DEBTS, crate::DEFAULT_NAME),
            },
        }
    }

    /// Names the store in metrics, `"store"` unless set.
    #[must_use]
    pub fn name(mut self, name: &'static str) -> Self {
        self.stand_in.ledger.set_store_name(name);
        self
    }

    /// Remembers the debts of at most `keys` keys, [`MAX_DEBTS`](Self::MAX_DEBTS) unless set.
    ///
    /// What the stand-in charges to further keys is not handed back. With 0 nothing is.
    #[must_use]
    pub fn max_debts(mut self, keys: usize) -> Self {
        self.stand_in.ledger.set_most(keys);
        self
    }

    /// The share of every limit that is enforced while the store is away.
    #[must_use]
    pub const fn share(&self) -> Share {
        self.stand_in.shares.share()
    }

    /// The store inside.
    pub const fn inner(&self) -> &S {
        &self.store
    }

    /// The store that stands in.
    pub const fn stand_in(&self) -> &L {
        &self.stand_in.local
    }

    /// How many keys the stand-in has charged that have not been handed back yet.
    #[must_use]
    pub fn debts(&self) -> usize {
        self.stand_in.ledger.len()
    }
}

impl<S: Store, L: InProcessStore> Store for Fallback<S, L> {
    async fn apply<'a>(&'a self, batch: Batch<'a>) -> Result<Verdicts> {
        if let Some(settled) = self.stand_in.settle(&batch) {
            return settled;
        }
        let answer = match self.hand_back(&batch).await {
            Err(error) => Err(error),
            Ok(()) if batch.settles_charges_of() == Source::Fallback => {
                self.settle_at_store(&batch).await
            }
            Ok(()) => self.store.apply(batch).await,
        };
        match answer {
            Err(error) if error.is_transient() => self.stand_in.judge(&batch, error),
            answer => answer,
        }
    }

    async fn reset<'a>(&'a self, keys: &'a [Key<'a>]) -> Result<u64> {
        // Before: a reset that is dropped on its way has done its part here, and no payment of old debts comes after it.
        self.stand_in.forget(keys).await?;
        let answer = self.store.reset(keys).await;
        // After: so that what was charged while the store was told is forgotten too.
        self.stand_in.forget(keys).await?;
        answer
    }

    fn capabilities(&self) -> Capabilities {
        let (store, local) = (
            self.store.capabilities(),
            self.stand_in.local.capabilities(),
        );
        store
            .with_virtual_time(store.virtual_time && local.virtual_time)
            .with_atomic_any_keys(store.atomic_any_keys && local.atomic_any_keys)
            .with_fallback(true)
    }

    fn apply_now(&self, batch: &Batch<'_>) -> Option<Result<Verdicts>> {
        let keys = batch.checks().iter().map(|check| check.key);
        if batch.settles_charges_of() == Source::Fallback || self.stand_in.ledger.owes(keys) {
            return None;
        }
        match self.store.apply_now(batch)? {
            Err(error) if error.is_transient() => Some(self.stand_in.judge(batch, error)),
            answer => Some(answer),
        }
    }
}
