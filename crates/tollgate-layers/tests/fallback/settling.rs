//! A charge of the stand-in is settled with the stand-in until it is handed back, and with the store afterwards.

use futures::executor::block_on;
use tollgate_core::{
    Algorithm, Batch, Cost, Limiter, Op, Quota, Settlement, Source, Store, Verdicts,
};

use crate::stores::{Counter, Health, Standing, hit, peek, setting};

/// The settlement of a charge, as the receipt has it.
fn settlement(charge: &Verdicts, charged: u64, actual: u64) -> Op {
    Op::Settle(Settlement {
        charged_at: charge.at(),
        charged: Cost::new(charged).unwrap(),
        mark: charge.as_slice()[0].mark(),
        actual,
    })
}

fn settle(
    standing: &Standing,
    counter: &Counter,
    op: Op,
    charged_by: Source,
) -> tollgate_core::Result<Verdicts> {
    let check = counter.check(op);
    block_on(standing.apply(Batch::of_one(&check).charged_by(charged_by)))
}

#[test]
fn before_the_store_is_back_it_corrects_the_stand_in_and_what_is_owed() {
    for algorithm in Algorithm::ALL {
        let (_, store, standing) = setting();
        let counter = Counter::new(algorithm, Quota::per_hour(40));
        store.set(Health::Away);
        let charge = counter.hit(&standing, 10);
        let calls = store.calls();
        let settled = settle(
            &standing,
            &counter,
            settlement(&charge, 10, 4),
            Source::Fallback,
        );
        let settled = settled.unwrap();
        assert_eq!(settled.source(), Source::Fallback);
        assert_eq!(
            counter.decision(&settled, false).remaining(),
            6,
            "{algorithm}"
        );
        assert_eq!(store.calls(), calls, "the store has nothing to do with it");
        store.set(Health::Up);
        assert_eq!(counter.drain(&standing), 36, "{algorithm}");
        assert_eq!(store.settled(), 4);
    }
}

#[test]
fn what_was_used_on_top_is_owed_as_well() {
    let (_, store, standing) = setting();
    let counter = Counter::new(Algorithm::FixedWindow, Quota::per_hour(40));
    store.set(Health::Away);
    let charge = counter.hit(&standing, 10);
    settle(
        &standing,
        &counter,
        settlement(&charge, 10, 13),
        Source::Fallback,
    )
    .unwrap();
    store.set(Health::Up);
    assert_eq!(counter.drain(&standing), 27);
}

#[test]
fn what_was_given_back_entirely_is_owed_no_more() {
    let (_, store, standing) = setting();
    let counter = Counter::new(Algorithm::SlidingLog, Quota::per_hour(40));
    store.set(Health::Away);
    let charge = counter.hit(&standing, 10);
    settle(
        &standing,
        &counter,
        settlement(&charge, 10, 0),
        Source::Fallback,
    )
    .unwrap();
    assert_eq!(standing.debts(), 0);
    assert_eq!(counter.drain(&standing), 10);
}

#[test]
fn once_handed_back_it_corrects_the_store() {
    for algorithm in [
        Algorithm::TokenBucket,
        Algorithm::LeakyBucket,
        Algorithm::Gcra,
    ] {
        let (_, store, standing) = setting();
        let counter = Counter::new(algorithm, Quota::per_hour(40));
        store.set(Health::Away);
        let charge = counter.hit(&standing, 10);
        store.set(Health::Up);
        counter.ask(&standing, peek(1)).unwrap();
        assert_eq!(counter.used(&store), 10);
        let settled = settle(
            &standing,
            &counter,
            settlement(&charge, 10, 4),
            Source::Fallback,
        );
        assert_eq!(settled.unwrap().source(), Source::Store);
        assert_eq!(counter.used(&store), 4, "{algorithm}");
    }
}

#[test]
fn what_the_store_charged_cannot_be_settled_while_it_is_away() {
    let (_, store, standing) = setting();
    let counter = Counter::new(Algorithm::FixedWindow, Quota::per_hour(40));
    let charge = counter.hit(&standing, 10);
    store.set(Health::Away);
    counter.hit(&standing, 1);
    let settled = settle(
        &standing,
        &counter,
        settlement(&charge, 10, 4),
        Source::Store,
    );
    assert!(settled.unwrap_err().is_transient());
    assert_eq!(counter.used(standing.stand_in()), 1);
}

#[test]
fn what_was_handed_back_cannot_be_settled_while_the_store_is_away_again() {
    let (_, store, standing) = setting();
    let counter = Counter::new(Algorithm::FixedWindow, Quota::per_hour(40));
    store.set(Health::Away);
    let charge = counter.hit(&standing, 10);
    store.set(Health::Up);
    counter.ask(&standing, peek(1)).unwrap();
    store.set(Health::Away);
    let settled = settle(
        &standing,
        &counter,
        settlement(&charge, 10, 4),
        Source::Fallback,
    );
    assert!(settled.unwrap_err().is_transient());
}

#[test]
fn a_settlement_beside_a_hit_is_not_made_by_half() {
    let (_, store, standing) = setting();
    let one = Counter::new(Algorithm::FixedWindow, Quota::per_hour(40));
    let other = Counter::new(Algorithm::SlidingLog, Quota::per_hour(40));
    let charge = one.hit(&standing, 10);
    store.set(Health::Away);
    let checks = [one.check(settlement(&charge, 10, 4)), other.check(hit(1))];
    assert!(block_on(standing.apply(Batch::new(&checks).unwrap())).is_err());
    assert_eq!(standing.debts(), 0);
}

#[test]
fn a_limiter_settles_each_receipt_where_it_was_charged() {
    let (_, store, standing) = setting();
    let limiter = Limiter::new(standing, Quota::per_hour(40));
    let remaining = || block_on(limiter.peek("someone")).unwrap().remaining();
    let reserve = |units| {
        let reservation = block_on(limiter.reserve("someone", units)).unwrap();
        reservation.into_receipt().unwrap()
    };
    let before = reserve(20);
    store.set(Health::Away);
    let (first, second) = (reserve(4), reserve(4));
    assert_eq!(first.source(), Source::Fallback);
    let settled = block_on(limiter.settle(first, 1)).unwrap();
    assert_eq!(
        (settled.source, settled.limit, settled.remaining),
        (Source::Fallback, 10, 5)
    );
    assert!(block_on(limiter.settle(before, 0)).is_err());
    store.set(Health::Up);
    assert_eq!(
        remaining(),
        15,
        "twenty by the store, and one and four by the stand-in"
    );
    let settled = block_on(limiter.settle(second, 0)).unwrap();
    assert_eq!(
        (settled.source, settled.limit, settled.remaining),
        (Source::Store, 40, 19)
    );
}
