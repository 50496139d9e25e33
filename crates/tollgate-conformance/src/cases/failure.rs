//! Dropped calls, outages and refusals.

use std::future::Future;
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};
use tollgate_core::{Algorithm, Batch, Error, ErrorKind, Result, Store, Timestamp, Verdicts};

use crate::case::{Case, Family, stories};
use crate::counter::{Answer, Counter, policy};
use crate::outcome::{Outcome, Stop, chain, ensure, ensure_eq};
use crate::testbed::TestBed;

pub(crate) fn cases() -> Vec<Case> {
    stories![Family::Failure =>
        a_dropped_call_is_charged_whole_or_not_at_all,
        a_dropped_call_touches_no_other,
        a_store_outlives_many_dropped_calls,
        a_named_instant_is_refused_where_it_cannot_be_judged_at,
        keys_that_cannot_be_judged_as_one_are_refused,
        an_outage_is_an_error_that_may_pass,
        an_outage_is_never_taken_for_an_answer,
        an_error_that_says_nothing_was_charged_is_right,
        service_resumes_after_an_outage,
    ]
}

/// Polls `call` and drops it after a while, unless it is done by then.
///
/// After its first poll, or a few polls later, or some time later: what `nth` modulo 8 makes it.
async fn dropped_after<T>(nth: u64, call: impl Future<Output = T>) -> Option<T> {
    let passing = async {
        for _ in 0..nth % 8 {
            tokio::task::yield_now().await;
        }
        if nth % 8 > 4 {
            sleep(Duration::from_micros(nth * 20)).await;
        }
    };
    tokio::select! {
        biased;
        done = call => Some(done),
        () = passing => None,
    }
}

/// 9600 units, an hour for each to flow back.
fn slow(bed: &TestBed, scope: &str, algorithm: Algorithm) -> Counter {
    bed.scoped(scope, "alice", policy(algorithm, "9600/400 days"))
}

async fn a_dropped_call_is_charged_whole_or_not_at_all(bed: TestBed) -> Outcome {
    let one = slow(&bed, "one", Algorithm::TokenBucket);
    let other = slow(&bed, "other", Algorithm::SlidingLog);
    let (mut answered, mut dropped) = (0, 0);
    for nth in 0..120 {
        match dropped_after(nth, bed.now().batch(&[one.hit(1), other.hit(1)])).await {
            Some(answers) => answered += u64::from(answers?[0].allowed),
            None => dropped += 1,
        }
        let left = bed.now().batch(&[one.peek(1), other.peek(1)]).await?;
        let used = 9_600 - left[0].remaining;
        ensure_eq!(
            left[1].remaining,
            left[0].remaining,
            "a batch over two keys was dropped, and both are left with the same"
        );
        ensure!(
            (answered..=answered + dropped).contains(&used),
            "{answered} hits were answered and {dropped} dropped, but {used} are charged"
        );
    }
    Ok(())
}

async fn a_dropped_call_touches_no_other(bed: TestBed) -> Outcome {
    let alice = slow(&bed, "", Algorithm::Gcra);
    let mut tasks = tokio::task::JoinSet::new();
    for task in 0..32_u64 {
        let (bed, alice) = (bed.clone(), alice.clone());
        tasks.spawn(async move {
            let (mut charged, mut dropped) = (0, 0);
            for nth in 0..20 {
                let hit = async { bed.now().hit(&alice, 1).await };
                let answer = if task % 2 == 0 {
                    Some(hit.await)
                } else {
                    dropped_after(nth, hit).await
                };
                match answer {
                    Some(answer) => charged += u64::from(answer?.admitted()?.allowed),
                    None => dropped += 1,
                }
            }
            Outcome::Ok((charged, dropped))
        });
    }
    let (mut charged, mut dropped) = (0, 0);
    while let Some(task) = tasks.join_next().await {
        let (more_charged, more_dropped) =
            task.map_err(|error| Stop::failed(format!("a task ended early: {error}")))??;
        charged += more_charged;
        dropped += more_dropped;
    }
    let used = 9_600 - bed.now().peek(&alice, 1).await?.remaining;
    ensure!(
        (charged..=charged + dropped).contains(&used),
        "{charged} hits were admitted and {dropped} dropped, but {used} are charged"
    );
    Ok(())
}

async fn a_store_outlives_many_dropped_calls(bed: TestBed) -> Outcome {
    let alice = slow(&bed, "", Algorithm::FixedWindow);
    for nth in 0..200 {
        // Whatever was answered is not the point here.
        let _ = dropped_after(nth, bed.now().hit(&alice, 1)).await;
    }
    for _ in 0..20 {
        bed.now().hit(&alice, 1).await?.admitted()?;
    }
    Ok(())
}

/// The error of a call that must not have an answer.
#[track_caller]
fn refused(answer: Result<Verdicts>, call: &str) -> Outcome<Error> {
    match answer {
        Err(error) => Ok(error),
        Ok(_) => Err(Stop::failed(format!("{call} was answered"))),
    }
}

async fn a_named_instant_is_refused_where_it_cannot_be_judged_at(bed: TestBed) -> Outcome {
    if bed.capabilities().virtual_time {
        return Err(Stop::NotApplicable(
            "the store judges at any instant".to_owned(),
        ));
    }
    let alice = slow(&bed, "", Algorithm::TokenBucket);
    let check = alice.hit(1);
    let batch = Batch::of_one(&check).at(Some(Timestamp::EPOCH));
    let error = refused(bed.store().apply(batch).await, "a hit at a named instant")?;
    ensure_eq!(
        error.kind(),
        ErrorKind::Unsupported,
        "the error says that it cannot be done"
    );
    bed.now().peek(&alice, 1).await?.as_never_seen()?;
    Ok(())
}

async fn keys_that_cannot_be_judged_as_one_are_refused(bed: TestBed) -> Outcome {
    if bed.capabilities().atomic_any_keys {
        return Err(Stop::NotApplicable(
            "the store judges any keys as one".to_owned(),
        ));
    }
    let subjects: Vec<Counter> = (0..32)
        .map(|nth| bed.counter(&format!("user {nth}"), Algorithm::TokenBucket, "10/day"))
        .collect();
    let checks: Vec<_> = subjects.iter().map(|subject| subject.hit(1)).collect();
    let error = refused(
        bed.store().apply(Batch::new(&checks)?).await,
        "a batch over 32 subjects",
    )?;
    ensure_eq!(
        error.kind(),
        ErrorKind::Unsupported,
        "the error says that it cannot be done"
    );
    for subject in &subjects {
        bed.now().peek(subject, 1).await?.as_never_seen()?;
    }
    Ok(())
}

/// The longest that a call may hang on a backend that is away.
const ANSWER: Duration = Duration::from_secs(15);

async fn hit_during_outage(bed: &TestBed, counter: &Counter) -> Outcome<Error> {
    let check = counter.hit(1);
    let answer = timeout(ANSWER, bed.store().apply(Batch::of_one(&check)))
        .await
        .map_err(|_| Stop::failed(format!("no answer within {ANSWER:?} of an outage")))?;
    refused(answer, "a hit on a backend that is away")
}

async fn an_outage_is_an_error_that_may_pass(bed: TestBed) -> Outcome {
    let (bed, outage) = bed.outage().await?;
    let alice = slow(&bed, "", Algorithm::TokenBucket);
    bed.now().hit(&alice, 1).await?.admitted()?;
    (outage.begin)().await?;
    let error = hit_during_outage(&bed, &alice).await?;
    (outage.end)().await?;
    ensure!(
        error.is_transient(),
        "an outage may pass, but the error says otherwise: {}",
        chain(&error)
    );
    ensure!(
        !error.store().is_empty(),
        "the error names the store, but it was: {}",
        chain(&error)
    );
    Ok(())
}

/// What a denial means, what a full key means and what an outage means are three things. The caller decides the third.
async fn an_outage_is_never_taken_for_an_answer(bed: TestBed) -> Outcome {
    let (bed, outage) = bed.outage().await?;
    let alice = slow(&bed, "", Algorithm::SlidingWindow);
    bed.now().hit(&alice, 1).await?.admitted()?;
    (outage.begin)().await?;
    hit_during_outage(&bed, &alice).await?;
    let check = alice.peek(1);
    let peeked = timeout(ANSWER, bed.store().apply(Batch::of_one(&check))).await;
    let keys = [alice.key()];
    let forgotten = timeout(ANSWER, bed.store().reset(&keys)).await;
    (outage.end)().await?;
    ensure!(
        !matches!(peeked, Ok(Ok(_))),
        "a peek at a backend that is away was answered"
    );
    ensure!(
        !matches!(forgotten, Ok(Ok(_))),
        "a reset on a backend that is away was reported as done"
    );
    Ok(())
}

/// Hits until the store answers again, as long as it says that the trouble may pass.
async fn first_answer(bed: &TestBed, counter: &Counter) -> Outcome<Answer> {
    let started = Instant::now();
    loop {
        let check = counter.peek(1);
        match bed.store().apply(Batch::of_one(&check)).await {
            Ok(verdicts) => {
                let verdict = verdicts.as_slice()[0];
                return Ok(Answer::new(
                    &check,
                    verdict,
                    verdicts.at(),
                    verdicts.source(),
                    false,
                ));
            }
            Err(error) if error.is_transient() && started.elapsed() < ANSWER => {
                sleep(Duration::from_millis(20)).await;
            }
            Err(error) => return Err(error.into()),
        }
    }
}

async fn an_error_that_says_nothing_was_charged_is_right(bed: TestBed) -> Outcome {
    let (bed, outage) = bed.outage().await?;
    let alice = slow(&bed, "", Algorithm::FixedWindow);
    bed.now().hit(&alice, 100).await?.admitted()?;
    (outage.begin)().await?;
    let mut unknown = 0;
    for _ in 0..5 {
        unknown += u64::from(hit_during_outage(&bed, &alice).await?.may_have_charged());
    }
    (outage.end)().await?;
    let used = 9_600 - first_answer(&bed, &alice).await?.remaining;
    ensure!(
        (100..=100 + unknown).contains(&used),
        "100 units were charged and {unknown} may have been, but {used} are"
    );
    Ok(())
}

async fn service_resumes_after_an_outage(bed: TestBed) -> Outcome {
    let (bed, outage) = bed.outage().await?;
    let alice = slow(&bed, "", Algorithm::Gcra);
    for _ in 0..2 {
        bed.now().hit(&alice, 1).await?.admitted()?;
        (outage.begin)().await?;
        hit_during_outage(&bed, &alice).await?;
        (outage.end)().await?;
        first_answer(&bed, &alice).await?;
    }
    bed.now().hit(&alice, 1).await?.admitted()?;
    Ok(())
}
