//! Many callers at once. Limits are per day, so that nothing flows back while a case runs.

use std::collections::BTreeSet;
use std::future::Future;
use std::time::Duration;

use tokio::task::JoinSet;
use tollgate_core::Algorithm;

use crate::case::{Case, Family, stories, stories_of_each_algorithm};
use crate::counter::{Counter, policy};
use crate::outcome::{Outcome, Stop, ensure, ensure_eq};
use crate::testbed::TestBed;

const TASKS: u64 = 32;
const CALLS: u64 = 25;
const LIMIT: u64 = 200;

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = stories_of_each_algorithm![Family::Concurrency =>
        exactly_the_limit as "{}_admits_exactly_its_limit",
        costs_add_up as "{}_charges_costs_exactly",
        peers_share_one_limit as "{}_admits_exactly_its_limit_over_two_clients",
        settlements_add_up as "{}_gives_back_exactly_what_is_settled",
    ];
    cases.extend(stories![Family::Concurrency =>
        batches_in_opposite_orders_wait_for_nobody_and_charge_exactly,
        batches_of_two_clients_in_opposite_orders_wait_for_nobody,
        no_batch_is_seen_half_charged,
        peeks_among_hits_spend_nothing,
        keys_do_not_disturb_each_other,
        instants_follow_the_order_of_the_charges,
    ]);
    cases
}

/// Runs `work` in [`TASKS`] tasks at once and returns what they came to.
async fn at_once<Work, Working, T>(work: Work) -> Outcome<Vec<T>>
where
    Work: Fn(u64) -> Working,
    Working: Future<Output = Outcome<T>> + Send + 'static,
    T: Send + 'static,
{
    let mut tasks: JoinSet<Outcome<T>> = (0..TASKS).map(work).collect();
    let mut results = Vec::new();
    while let Some(task) = tasks.join_next().await {
        results.push(task.map_err(|error| Stop::failed(format!("a task ended early: {error}")))??);
    }
    Ok(results)
}

/// [`TASKS`] tasks of [`CALLS`] hits each; every admitted hit with what it left.
async fn hits(beds: &[TestBed], counter: &Counter) -> Outcome<Vec<u64>> {
    let left = at_once(|task| {
        let bed = beds[usize::try_from(task).unwrap_or(0) % beds.len()].clone();
        let counter = counter.clone();
        async move {
            let mut left = Vec::new();
            for _ in 0..CALLS {
                let answer = bed.now().hit(&counter, 1).await?;
                if answer.allowed {
                    left.push(answer.remaining);
                }
            }
            Ok(left)
        }
    });
    Ok(left.await?.concat())
}

/// Exactly the limit was admitted, and every admitted hit left one unit less than the one before.
fn exactly(left: &[u64]) -> Outcome {
    ensure_eq!(
        u64::try_from(left.len()).ok(),
        Some(LIMIT),
        "hits admitted of {}",
        TASKS * CALLS
    );
    let distinct: BTreeSet<u64> = left.iter().copied().collect();
    ensure!(
        distinct == (0..LIMIT).collect(),
        "no two admitted hits leave the same, but these were left: {distinct:?}"
    );
    Ok(())
}

/// Known from a limiter whose two limits of 200 admitted 201 in one of forty rounds.
async fn exactly_the_limit(bed: TestBed, algorithm: Algorithm) -> Outcome {
    let alice = bed.counter("alice", algorithm, "200/day");
    exactly(&hits(&[bed.clone(), bed.at_once()], &alice).await?)?;
    bed.now().hit(&alice, 1).await?.denied()?.leaving(0)?;
    Ok(())
}

async fn peers_share_one_limit(bed: TestBed, algorithm: Algorithm) -> Outcome {
    let alice = bed.counter("alice", algorithm, "200/day");
    let peer = bed.peer().await?;
    exactly(&hits(&[bed, peer], &alice).await?)
}

async fn costs_add_up(bed: TestBed, algorithm: Algorithm) -> Outcome {
    let alice = bed.counter("alice", algorithm, "1000/day");
    let charged = at_once(|task| {
        let (bed, alice) = (bed.clone(), alice.clone());
        async move {
            let mut charged = 0;
            for call in 0..CALLS {
                let units = (task + call) % 7 + 1;
                let answer = bed.now().hit(&alice, units).await?;
                charged += if answer.allowed { units } else { 0 };
            }
            Ok(charged)
        }
    });
    let charged: u64 = charged.await?.iter().sum();
    let left = bed.now().peek(&alice, 1).await?.remaining;
    ensure_eq!(
        charged + left,
        1_000,
        "what was charged and what is left make the limit"
    );
    ensure!(
        left < 7,
        "{left} units are left, though hits that small were denied"
    );
    Ok(())
}

async fn settlements_add_up(bed: TestBed, algorithm: Algorithm) -> Outcome {
    // An hour for each unit to flow back: nothing does while the case runs.
    let alice = bed.counter("alice", algorithm, "9600/400 days");
    let used = at_once(|task| {
        let (bed, alice) = (bed.clone(), alice.clone());
        async move {
            let mut used = 0;
            for call in 0..CALLS {
                let charged = bed.now().hit(&alice, 10).await?;
                charged.admitted()?;
                let actual = (task + call) % 13;
                bed.now().settle(&alice, charged.settled_at(actual)).await?;
                used += actual;
            }
            Ok(used)
        }
    });
    let used: u64 = used.await?.iter().sum();
    bed.now().peek(&alice, 1).await?.leaving(9_600 - used)?;
    Ok(())
}

async fn batches_in_opposite_orders_wait_for_nobody_and_charge_exactly(bed: TestBed) -> Outcome {
    opposite_orders(&bed.clone(), &bed).await
}

/// Known from multi-row writes in opposite orders, which a database ends with a deadlock error.
async fn batches_of_two_clients_in_opposite_orders_wait_for_nobody(bed: TestBed) -> Outcome {
    let peer = bed.peer().await?;
    opposite_orders(&bed, &peer).await
}

async fn opposite_orders(one: &TestBed, other: &TestBed) -> Outcome {
    one.needs_any_keys()?;
    let alice = one.counter("alice", Algorithm::TokenBucket, "200/day");
    let bob = one.counter("bob", Algorithm::SlidingLog, "200/day");
    let admitted = at_once(|task| {
        let forwards = task % 2 == 0;
        let bed = if forwards { one.clone() } else { other.clone() };
        let (alice, bob) = (alice.clone(), bob.clone());
        async move {
            let mut admitted = 0;
            for _ in 0..CALLS {
                let mut checks = [alice.hit(1), bob.hit(1)];
                if !forwards {
                    checks.reverse();
                }
                let answers = bed.now().batch(&checks).await?;
                admitted += u64::from(answers.iter().all(|answer| answer.allowed));
            }
            Ok(admitted)
        }
    });
    let admitted: u64 = admitted.await?.iter().sum();
    ensure_eq!(admitted, LIMIT, "batches admitted of {}", TASKS * CALLS);
    for counter in [&alice, &bob] {
        one.now().peek(counter, 1).await?.denied()?.leaving(0)?;
    }
    Ok(())
}

async fn no_batch_is_seen_half_charged(bed: TestBed) -> Outcome {
    let one = bed.scoped("one", "alice", policy(Algorithm::FixedWindow, "200/day"));
    let other = bed.scoped("other", "alice", policy(Algorithm::SlidingLog, "200/day"));
    at_once(|task| {
        let (bed, one, other) = (bed.clone(), one.clone(), other.clone());
        async move {
            for _ in 0..CALLS {
                let answers = if task % 2 == 0 {
                    bed.now().batch(&[one.hit(1), other.hit(1)]).await?
                } else {
                    bed.now().batch(&[other.peek(1), one.peek(1)]).await?
                };
                ensure_eq!(
                    answers[0].remaining,
                    answers[1].remaining,
                    "two keys that are only charged together are left with the same"
                );
            }
            Ok(())
        }
    })
    .await?;
    Ok(())
}

async fn peeks_among_hits_spend_nothing(bed: TestBed) -> Outcome {
    let alice = bed.counter("alice", Algorithm::SlidingWindow, "200/day");
    // However the tasks are scheduled, one peek comes before the last hit.
    bed.now().peek(&alice, 1).await?;
    let (peeking, peeked) = (bed.clone(), alice.clone());
    let peeks = tokio::spawn(async move {
        for _ in 0..TASKS * CALLS {
            peeking.now().peek(&peeked, 1).await?;
        }
        Outcome::Ok(())
    });
    exactly(&hits(&[bed], &alice).await?)?;
    peeks
        .await
        .map_err(|error| Stop::failed(format!("the peeks ended early: {error}")))?
}

async fn keys_do_not_disturb_each_other(bed: TestBed) -> Outcome {
    let admitted = at_once(|task| {
        let bed = bed.clone();
        async move {
            let own = bed.counter(&format!("user {task}"), Algorithm::Gcra, "10/day");
            let mut admitted = 0;
            for _ in 0..CALLS {
                admitted += u64::from(bed.now().hit(&own, 1).await?.allowed);
            }
            Ok(admitted)
        }
    });
    for admitted in admitted.await? {
        ensure_eq!(
            admitted,
            10,
            "hits admitted on a key that one task has for itself"
        );
    }
    Ok(())
}

/// Known from stores that read the clock and then wait for a lock: by then a window may be over.
async fn instants_follow_the_order_of_the_charges(bed: TestBed) -> Outcome {
    // How far a clock may be set between two readings of it.
    let clock_set = Duration::from_millis(1);
    let alice = bed.counter("alice", Algorithm::FixedWindow, "1000/day");
    let charges = at_once(|_| {
        let (bed, alice) = (bed.clone(), alice.clone());
        async move {
            let mut charges = Vec::new();
            for _ in 0..CALLS {
                let answer = bed.now().hit(&alice, 1).await?;
                charges.push((answer.admitted()?.remaining, answer.at));
            }
            Ok(charges)
        }
    });
    let mut charges = charges.await?.concat();
    charges.sort_by_key(|(left, _)| std::cmp::Reverse(*left));
    for pair in charges.windows(2) {
        let [(_, earlier), (left, later)] = [pair[0], pair[1]];
        ensure!(
            earlier <= later + clock_set,
            "the charge that left {left} was judged at {later}, and the one before it at {earlier}"
        );
    }
    Ok(())
}
