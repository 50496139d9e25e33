//! A reset and a payment that is under way do not undo each other.

use std::pin::pin;
use std::task::{Context, Poll, Waker};

use futures::executor::block_on;
use tollgate_core::{Algorithm, Batch, Quota, Store};

use crate::stores::{Counter, Health, hit, peek, setting};

fn counter() -> Counter {
    Counter::new(Algorithm::FixedWindow, Quota::per_minute(8))
}

#[test]
fn a_payment_that_a_reset_overtook_writes_nothing_off_that_was_charged_later() {
    let (_, store, standing) = setting();
    let counter = counter();
    store.set(Health::Away);
    counter.hit(&standing, 2);
    store.set(Health::Up);
    let check = counter.check(peek(1));
    let mut paying = pin!(standing.apply(Batch::of_one(&check)));
    let mut context = Context::from_waker(Waker::noop());
    while store.settled() == 0 {
        assert!(paying.as_mut().poll(&mut context).is_pending());
    }
    block_on(standing.reset(&[counter.key()])).unwrap();
    store.set(Health::Away);
    counter.hit(&standing, 1);
    assert_eq!(standing.debts(), 1);
    while matches!(paying.as_mut().poll(&mut context), Poll::Pending) {}
    store.set(Health::Up);
    assert_eq!(standing.debts(), 1, "the store knows nothing of it");
    assert!(counter.hit(&standing, 1).is_allowed());
    assert_eq!(counter.used(&store), 2);
}

#[test]
fn a_payment_that_has_not_been_sent_is_called_off_by_a_reset() {
    let (_, store, standing) = setting();
    let counter = counter();
    store.set(Health::Away);
    counter.hit(&standing, 2);
    store.set(Health::Up);
    let check = counter.check(hit(1));
    let mut hitting = pin!(standing.apply(Batch::of_one(&check)));
    let mut context = Context::from_waker(Waker::noop());
    let calls = store.calls();
    assert!(hitting.as_mut().poll(&mut context).is_pending());
    assert_eq!(store.calls(), calls + 1, "the peek is under way");
    block_on(standing.reset(&[counter.key()])).unwrap();
    assert!(block_on(hitting).unwrap().is_allowed());
    assert_eq!((counter.used(&store), store.settled()), (1, 0));
}

#[test]
fn a_reset_that_is_dropped_half_way_has_forgotten_what_the_stand_in_charged() {
    let (_, store, standing) = setting();
    let counter = counter();
    store.set(Health::Away);
    assert_eq!(counter.drain(&standing), 2);
    let keys = [counter.key()];
    let mut context = Context::from_waker(Waker::noop());
    assert!(pin!(standing.reset(&keys)).poll(&mut context).is_pending());
    assert_eq!(standing.debts(), 0);
    assert_eq!(counter.drain(&standing), 2);
}
