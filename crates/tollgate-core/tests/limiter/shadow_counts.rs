//! What policies in shadow mode count, and that the enforced ones never notice them.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use tollgate_core::{
    Algorithm, Decision, Limiter, Policies, Policy, PolicyDecision, Quota, Report, Source,
};

use crate::stores::{MapStore, start};

type MapLimiter = Limiter<Arc<MapStore>>;

fn policy(name: &str, algorithm: Algorithm, quota: &str) -> Policy {
    Policy::new(name, algorithm, quota.parse().expect("legal")).expect("legal")
}

fn limiter(policies: impl IntoIterator<Item = Policy>) -> MapLimiter {
    Limiter::new(MapStore::shared(), Policies::new(policies).expect("legal"))
}

fn remaining(decision: &Decision<'_>) -> Vec<u64> {
    decision
        .each()
        .map(|decision| decision.remaining())
        .collect()
}

#[tokio::test]
async fn a_receipt_settles_the_shadows_that_were_charged() {
    for algorithm in Algorithm::ALL {
        let limiter = limiter([
            policy("shadow", algorithm, "8/minute").shadow(),
            policy("enforced", algorithm, "10/minute"),
        ]);
        let reservation = limiter.reserve("a", 6).await.unwrap();
        assert_eq!(remaining(reservation.decision()), [2, 4], "{algorithm}");
        let receipt = reservation.into_receipt().unwrap();
        assert_eq!(receipt.charged_at(), start());
        let report = limiter.settle(receipt, 1).await.unwrap();
        assert_eq!((report.policy.as_str(), report.remaining), ("enforced", 9));
        assert!(report.allowed && report.source == Source::Store);
        assert!(report.shadow_violated.is_empty() && report.shadow_failed.is_empty());
        assert_eq!(remaining(&limiter.peek("a").await.unwrap()), [7, 9]);
    }
}

#[tokio::test]
async fn a_shadow_that_denied_a_reservation_is_not_settled() {
    for (actual, left) in [(0, 10), (9, 1)] {
        let limiter = limiter([
            policy("enforced", Algorithm::SlidingLog, "10/minute"),
            policy("shadow", Algorithm::SlidingLog, "5/minute").shadow(),
        ]);
        let reservation = limiter.reserve("a", 6).await.unwrap();
        assert_eq!(reservation.decision().shadow_violated().count(), 1);
        let receipt = reservation.into_receipt().unwrap();
        limiter.settle(receipt, actual).await.unwrap();
        assert_eq!(remaining(&limiter.peek("a").await.unwrap()), [left, 5]);
    }
}

#[tokio::test]
async fn a_denied_reservation_holds_no_shadow() {
    let limiter = limiter([
        policy("enforced", Algorithm::Gcra, "5/minute"),
        policy("shadow", Algorithm::Gcra, "10/minute").shadow(),
    ]);
    let reservation = limiter.reserve("a", 6).await.unwrap();
    assert!(!reservation.decision().is_allowed());
    assert!(reservation.into_receipt().is_none());
    assert_eq!(limiter.store().keys(), 0);
}

#[tokio::test]
async fn a_reservation_under_shadows_only_has_a_receipt_for_those_with_room() {
    let limiter = limiter([
        policy("five", Algorithm::FixedWindow, "5/minute").shadow(),
        policy("ten", Algorithm::FixedWindow, "10/minute").shadow(),
    ]);
    let receipt = limiter.reserve("a", 6).await.unwrap().into_receipt();
    let receipt = receipt.unwrap();
    assert_eq!(
        (receipt.source(), receipt.charged_at()),
        (Source::Store, start())
    );
    assert_eq!(remaining(&limiter.peek("a").await.unwrap()), [5, 4]);
    let report = limiter.settle(receipt, 2).await.unwrap();
    assert!(report.allowed && report.shadow_violated.is_empty());
    assert_eq!(remaining(&limiter.peek("a").await.unwrap()), [5, 8]);

    let reservation = limiter.reserve("a", 11).await.unwrap();
    assert!(reservation.decision().is_allowed());
    assert!(reservation.into_receipt().is_none(), "nobody had room");
}

/// Each call is an instant of its own, and a settlement names the instant of the charge it corrects.
#[tokio::test]
async fn a_shadow_is_settled_within_the_window_it_was_charged_in() {
    let limiter = limiter([
        policy("enforced", Algorithm::FixedWindow, "10/hour"),
        policy("shadow", Algorithm::FixedWindow, "10/minute").shadow(),
    ]);
    let receipt = limiter.reserve("a", 6).await.unwrap().into_receipt();
    limiter.store().clock.advance(Duration::from_secs(60));
    assert!(limiter.hit_n("a", 3).await.unwrap().is_allowed());
    limiter.settle(receipt.unwrap(), 0).await.unwrap();
    assert_eq!(remaining(&limiter.peek("a").await.unwrap()), [7, 7]);
}

/// What happens to a limiter, and how many microseconds after the last.
#[derive(Clone, Debug)]
enum Event {
    Hit(u64),
    Peek(u64),
    Reserve { units: u64, actual: u64 },
    Reset,
}

fn events() -> impl Strategy<Value = Vec<(u64, Event)>> {
    let units = 1..=6_u64;
    let event = prop_oneof![
        10 => units.clone().prop_map(Event::Hit),
        2 => units.clone().prop_map(Event::Peek),
        2 => (units, 0..=9_u64).prop_map(|(units, actual)| Event::Reserve { units, actual }),
        1 => Just(Event::Reset),
    ];
    let pause = prop_oneof![Just(0), 1..=400_000_u64, Just(1_000_000)];
    vec((pause, event), 1..40)
}

fn policies(shadow: impl Strategy<Value = bool>) -> impl Strategy<Value = Vec<Policy>> {
    let policy = (
        select(Algorithm::ALL.to_vec()),
        1..=8_u64,
        1..=3_u64,
        shadow,
    );
    vec(policy, 1..5).prop_map(|policies| {
        let numbered = policies.into_iter().enumerate();
        let made = numbered.map(|(index, (algorithm, limit, seconds, shadow))| {
            let quota = Quota::new(limit, Duration::from_secs(seconds)).expect("legal");
            let policy = Policy::new(&format!("p{index}"), algorithm, quota).expect("legal");
            if shadow { policy.shadow() } else { policy }
        });
        made.collect()
    })
}

fn enforce(policy: &Policy) -> Policy {
    Policy::new(policy.name(), policy.algorithm(), policy.quota()).expect("legal")
}

/// Polls a future that is ready at once.
fn ready<T>(future: impl Future<Output = T>) -> T {
    let mut context = Context::from_waker(Waker::noop());
    match pin!(future).poll(&mut context) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("a store in memory answers at once"),
    }
}

/// Everything a policy says but its mode.
fn said(decision: &PolicyDecision<'_>) -> String {
    format!(
        "{} {} {} {:?} {:?} {:?}",
        decision.policy().name(),
        decision.is_allowed(),
        decision.remaining(),
        decision.retry_after(),
        decision.reset_at(),
        decision.delay(),
    )
}

/// What one event was answered: a report, and what each policy said.
#[derive(Debug, PartialEq)]
struct Answer {
    report: Option<Report>,
    said: Vec<(bool, String)>,
}

impl Answer {
    fn of(decision: &Decision<'_>) -> Self {
        let each = decision.each();
        Self {
            report: Some(decision.to_report()),
            said: each
                .map(|decision| (decision.is_shadow(), said(&decision)))
                .collect(),
        }
    }

    fn of_report(report: Report) -> Self {
        Self {
            report: Some(report),
            said: Vec::new(),
        }
    }

    /// What is left of it when the shadows are taken out.
    fn without_shadows(mut self) -> Self {
        self.said.retain(|(shadow, _)| !shadow);
        if let Some(report) = &mut self.report {
            report.shadow_violated.clear();
        }
        self
    }
}

fn play(limiter: &MapLimiter, event: &Event) -> Vec<Answer> {
    match *event {
        Event::Hit(units) => vec![Answer::of(&limiter.hit_n_now("a", units).expect("judged"))],
        Event::Peek(units) => {
            let peeked = ready(limiter.peek_n("a", units)).expect("judged");
            vec![Answer::of(&peeked)]
        }
        Event::Reserve { units, actual } => {
            let reservation = ready(limiter.reserve("a", units)).expect("judged");
            let mut answers = vec![Answer::of(reservation.decision())];
            if let Some(receipt) = reservation.into_receipt() {
                let settled = ready(limiter.settle(receipt, actual)).expect("settled");
                answers.push(Answer::of_report(settled));
            }
            answers
        }
        Event::Reset => {
            ready(limiter.reset("a")).expect("reset");
            Vec::new()
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn the_enforced_policies_answer_as_if_the_shadows_did_not_exist(
        policies in policies(any::<bool>()),
        events in events(),
    ) {
        let enforced: Vec<_> = policies.iter().filter(|policy| !policy.is_shadow()).cloned().collect();
        prop_assume!(!enforced.is_empty());
        let (without, with) = (limiter(enforced), limiter(policies));
        for (pause, event) in events {
            for limiter in [&without, &with] {
                limiter.store().clock.advance(Duration::from_micros(pause));
            }
            let answers = play(&with, &event).into_iter().map(Answer::without_shadows);
            prop_assert_eq!(play(&without, &event), answers.collect::<Vec<_>>());
        }
    }

    #[test]
    fn while_no_shadow_would_deny_each_counts_as_if_it_were_enforced(
        policies in policies(any::<bool>()),
        events in events(),
    ) {
        let enforced = limiter(policies.iter().map(enforce));
        let shadowed = limiter(policies);
        for (pause, event) in events {
            for limiter in [&enforced, &shadowed] {
                limiter.store().clock.advance(Duration::from_micros(pause));
            }
            let answers = play(&shadowed, &event);
            let denies = |answer: &Answer| answer.report.as_ref().is_some_and(|report| !report.shadow_violated.is_empty());
            if answers.iter().any(denies) {
                break;
            }
            let texts = |answers: Vec<Answer>| -> Vec<String> {
                answers.into_iter().flat_map(|answer| answer.said).map(|(_, said)| said).collect()
            };
            prop_assert_eq!(texts(play(&enforced, &event)), texts(answers));
        }
    }

    /// Denials included: nobody else's answer keeps it from being charged.
    #[test]
    fn a_shadow_by_itself_counts_exactly_as_its_enforced_twin(
        policies in policies(Just(true)),
        events in events(),
    ) {
        let shadow = policies[0].clone();
        let (enforced, shadowed) = (limiter([enforce(&shadow)]), limiter([shadow]));
        for (pause, event) in events {
            for limiter in [&enforced, &shadowed] {
                limiter.store().clock.advance(Duration::from_micros(pause));
            }
            let texts = |answers: Vec<Answer>| -> Vec<String> {
                answers.into_iter().flat_map(|answer| answer.said).map(|(_, said)| said).collect()
            };
            prop_assert_eq!(texts(play(&enforced, &event)), texts(play(&shadowed, &event)));
        }
    }
}
