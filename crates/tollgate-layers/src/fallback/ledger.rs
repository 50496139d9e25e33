//! What the stand-in has charged and the store does not know of yet.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use hashbrown::HashMap;
use parking_lot::Mutex;
use tokio::sync::watch;
use tollgate_core::{Key, Settlement, Timestamp};

use crate::owned_key::OwnedKey;

/// The debts of keys, bounded.
#[derive(Debug)]
pub(super) struct Ledger {
    debts: Mutex<Debts>,
    /// How many there are, to be read without the lock: none, as long as all is well.
    len: AtomicUsize,
    store_name: &'static str,
}

#[derive(Debug)]
struct Debts {
    by_key: HashMap<OwnedKey, Debt, ahash::RandomState>,
    most: usize,
    /// When those that count no more are next let go, on the stand-in's clock.
    next_sweep: Timestamp,
}

#[derive(Debug)]
struct Debt {
    /// Units charged by the stand-in since the last payment.
    owed: u64,
    /// When the stand-in's own state of the key is as good as new.
    until: Timestamp,
    /// Ends when the payment that is under way does.
    payment: Option<watch::Receiver<()>>,
}

/// What is to be done about the debts of one call's keys before the store is asked.
#[derive(Debug)]
pub(super) struct Dues<'a> {
    /// What this call is to pay.
    pub(super) payment: Payment<'a>,
    /// Payments that other calls have under way.
    pub(super) others: Vec<watch::Receiver<()>>,
}

impl Ledger {
    /// 2^20 microseconds, about a second.
    const SWEEP: Duration = Duration::from_micros(1 << 20);

    pub(super) fn new(most: usize, store_name: &'static str) -> Self {
        Self {
            debts: Mutex::new(Debts {
                by_key: HashMap::default(),
                most,
                next_sweep: Timestamp::EPOCH,
            }),
            len: AtomicUsize::new(0),
            store_name,
        }
    }

    pub(super) fn set_store_name(&mut self, name: &'static str) {
        self.store_name = name;
    }

    pub(super) fn set_most(&mut self, keys: usize) {
        self.debts.get_mut().most = keys;
    }

    pub(super) fn len(&self) -> usize {
        self.len.load(Ordering::Acquire)
    }

    fn changed(&self, debts: &Debts) {
        let len = debts.by_key.len();
        if self.len.swap(len, Ordering::Release) != len {
            let debts = u32::try_from(len).unwrap_or(u32::MAX);
            metrics::gauge!("tollgate_fallback_debts", "store" => self.store_name)
                .set(f64::from(debts));
        }
    }

    /// Owes `units` more for each of `charges`, which are told with when their states are as good as new.
    pub(super) fn charge<'k>(
        &self,
        charges: impl IntoIterator<Item = (Key<'k>, u64, Timestamp)>,
        now: Timestamp,
    ) {
        let mut debts = self.debts.lock();
        for (key, units, until) in charges {
            if let Some(debt) = debts.by_key.get_mut(&key) {
                debt.owed = debt.owed.saturating_add(units);
                debt.until = until;
                continue;
            }
            if debts.is_full() {
                debts.sweep(now);
            }
            if debts.is_full() {
                let forgotten = metrics::counter!("tollgate_fallback_debts_forgotten_total", "store" => self.store_name);
                forgotten.increment(1);
                continue;
            }
            let debt = Debt {
                owed: units,
                until,
                payment: None,
            };
            debts.by_key.insert(OwnedKey::from(&key), debt);
        }
        self.changed(&debts);
    }

    /// Corrects what is owed for `keys` by `settle`, if all of it is still owed and nobody is about to pay it.
    ///
    /// `settle` corrects the stand-in's own states meanwhile, so that none is paid half way.
    pub(super) fn settle<T>(
        &self,
        corrections: &[(Key<'_>, Settlement)],
        settle: impl FnOnce() -> T,
    ) -> Option<T> {
        let mut debts = self.debts.lock();
        let owes = |(key, _): &(Key<'_>, Settlement)| {
            let debt = debts.by_key.get(key);
            debt.is_some_and(|debt| debt.payment.is_none())
        };
        if !corrections.iter().all(owes) {
            return None;
        }
        let settled = settle();
        for (key, settlement) in corrections {
            let Some(debt) = debts.by_key.get_mut(key) else {
                continue;
            };
            let owed = debt.owed.saturating_add(settlement.actual);
            debt.owed = owed.saturating_sub(settlement.charged.get());
            if debt.owed == 0 {
                debts.by_key.remove(key);
            }
        }
        self.changed(&debts);
        Some(settled)
    }

    /// Whether any of `keys` owes something.
    pub(super) fn owes<'k>(&self, keys: impl IntoIterator<Item = Key<'k>>) -> bool {
        if self.len() == 0 {
            return false;
        }
        let debts = self.debts.lock();
        keys.into_iter().any(|key| debts.by_key.contains_key(&key))
    }

    /// Takes on the debts of `keys` that nobody pays yet; `None` if there are none, nor others' payments to wait for.
    pub(super) fn take_on<'a>(
        &'a self,
        keys: impl Iterator<Item = Key<'a>> + Clone,
        now: Timestamp,
    ) -> Option<Dues<'a>> {
        let mut debts = self.debts.lock();
        if debts.is_sweep_due(now) {
            debts.sweep(now);
            self.changed(&debts);
        }
        if !keys.clone().any(|key| debts.by_key.contains_key(&key)) {
            return None;
        }
        let (done, ends) = watch::channel(());
        let (mut mine, mut others) = (Vec::new(), Vec::new());
        for (place, key) in keys.enumerate() {
            let Some(debt) = debts.by_key.get_mut(&key) else {
                continue;
            };
            if let Some(payment) = &debt.payment {
                others.push(payment.clone());
                continue;
            }
            debt.payment = Some(ends.clone());
            let owed = debt.owed;
            mine.push(Due { place, key, owed });
        }
        let payment = Payment {
            ledger: self,
            dues: mine,
            sent: false,
            ends,
            _done: done,
        };
        Some(Dues { payment, others })
    }

    /// Ends the payment of `key` that `ends` belongs to: `units` of what it owes are paid.
    ///
    /// A debt that was made after a reset has forgiven the one to be paid is another, and stays.
    fn pay(&self, key: &Key<'_>, ends: &watch::Receiver<()>, units: u64) {
        let mut debts = self.debts.lock();
        let debt = debts.by_key.get_mut(key);
        let Some(debt) = debt.filter(|debt| debt.is_paid_by(ends)) else {
            return;
        };
        debt.payment = None;
        debt.owed = debt.owed.saturating_sub(units);
        if debt.owed == 0 {
            debts.by_key.remove(key);
        }
        self.changed(&debts);
    }

    /// Forgives the debts of `keys`.
    pub(super) fn forgive(&self, keys: &[Key<'_>]) {
        let mut debts = self.debts.lock();
        for key in keys {
            debts.by_key.remove(key);
        }
        self.changed(&debts);
    }
}

impl Debt {
    fn is_paid_by(&self, ends: &watch::Receiver<()>) -> bool {
        let payment = self.payment.as_ref();
        payment.is_some_and(|payment| payment.same_channel(ends))
    }
}

impl Debts {
    fn is_full(&self) -> bool {
        self.by_key.len() >= self.most
    }

    /// A clock that has stepped back is a reason as well.
    fn is_sweep_due(&self, now: Timestamp) -> bool {
        now >= self.next_sweep || now + Ledger::SWEEP < self.next_sweep
    }

    /// Lets go of debts that count no more, if that has not been done a moment ago.
    fn sweep(&mut self, now: Timestamp) {
        if !self.is_sweep_due(now) {
            return;
        }
        self.next_sweep = now + Ledger::SWEEP;
        self.by_key
            .retain(|_, debt| debt.payment.is_some() || now < debt.until);
    }
}

/// What one key owes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Due<'a> {
    /// The key's place in the batch.
    pub(super) place: usize,
    key: Key<'a>,
    /// What it owed when the payment began.
    pub(super) owed: u64,
}

/// A call's payment of the debts it has taken on. However it ends, the debts are free for the next call.
#[derive(Debug)]
pub(super) struct Payment<'a> {
    ledger: &'a Ledger,
    dues: Vec<Due<'a>>,
    /// Whether the units may have reached the store.
    sent: bool,
    /// What the debts know this payment by.
    ends: watch::Receiver<()>,
    /// Whoever waits for the payment wakes when this is dropped, which is after the debts have been written off.
    _done: watch::Sender<()>,
}

impl<'a> Payment<'a> {
    pub(super) fn dues(&self) -> &[Due<'a>] {
        &self.dues
    }

    /// Whether `key` owes still what this payment has taken on: a reset forgives it.
    pub(super) fn is_due(&self, key: &Key<'_>) -> bool {
        let debts = self.ledger.debts.lock();
        let debt = debts.by_key.get(key);
        debt.is_some_and(|debt| debt.is_paid_by(&self.ends))
    }

    /// From here on the debts count as paid, unless [`not_sent`](Self::not_sent) takes that back.
    pub(super) fn sent(&mut self) {
        self.sent = true;
    }

    /// The store certainly charged nothing.
    pub(super) fn not_sent(&mut self) {
        self.sent = false;
    }
}

impl Drop for Payment<'_> {
    fn drop(&mut self) {
        for due in &self.dues {
            let paid = if self.sent { due.owed } else { 0 };
            self.ledger.pay(&due.key, &self.ends, paid);
        }
    }
}
