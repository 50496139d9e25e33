//! One run: a fault under load, its figures, and the promises that hold in every one.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::Result;
use futures::future::join_all;
use tollgate_core::{FailureMode, SharedStore};

use crate::guide;
use crate::load::{LIMIT, Load, MODES, Seen, limiter};
use crate::stack::{BOUND, Stack, share_of};
use crate::tally::Tally;

/// What a busy machine may add to the longest call: callers wait for the processor too.
const MARGIN: Duration = Duration::from_secs(1);
/// Load before the fault, and after it.
const AROUND: Duration = Duration::from_millis(300);
/// A store that is well again is asked again within this.
const BACK_WITHIN: Duration = Duration::from_secs(30);

/// What is broken, and how.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scene {
    pub(crate) store: &'static str,
    pub(crate) fault: &'static str,
}

/// What came of a run for the callers of one stack.
#[derive(Debug)]
pub(crate) struct Outcome {
    scene: Scene,
    stack: &'static str,
    seen: Seen,
    back_after: Duration,
}

impl Scene {
    /// Lets `fault` happen, on a thread of its own, to a store under the load of every stack: it begins and ends while
    /// callers go on. What it returns is kept for them, and handed back once they have stopped.
    pub(crate) async fn play<T: Send + 'static>(
        self,
        stacks: &[Stack],
        fault: impl FnOnce() -> Result<T> + Send + 'static,
    ) -> (Vec<Outcome>, T) {
        join_all(stacks.iter().map(until_answered)).await;
        let loads: Vec<_> = stacks.iter().map(Load::start).collect();
        tokio::time::sleep(AROUND).await;
        let kept = tokio::task::spawn_blocking(fault).await.unwrap().unwrap();
        let ends = stacks.iter().zip(loads).map(async |(stack, load)| {
            let back_after = until_answered(stack).await;
            tokio::time::sleep(AROUND).await;
            is_exact(stack).await;
            Outcome {
                scene: self,
                stack: stack.name,
                seen: load.stop().await,
                back_after,
            }
        });
        let outcomes = join_all(ends).await;
        outcomes.iter().for_each(Outcome::print);
        assert!(guide::lists(self), "the guide does not list {self:?}");
        (outcomes, kept)
    }
}

/// Asks until the store itself answers everybody: what serves one subject may be back before what serves another.
async fn until_answered(stack: &Stack) -> Duration {
    let limiter = limiter(&stack.store, "probe", FailureMode::Closed);
    let started = Instant::now();
    loop {
        let peeks = (0..16).map(async |number| limiter.peek(format!("probe {number}")).await);
        let answers = join_all(peeks).await.into_iter().map(Result::unwrap);
        if answers.into_iter().all(|decision| !decision.is_degraded()) {
            return started.elapsed();
        }
        let waited = started.elapsed();
        assert!(waited < BACK_WITHIN, "the store does not come back");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Somebody whom nobody has limited so far gets the limit, to the unit.
async fn is_exact(stack: &Stack) {
    let started = Instant::now();
    for mode in MODES {
        let limiter = limiter(&stack.store, stack.name, mode);
        // On a busy machine a store that is well may be late, too. Then somebody else is tried.
        for number in 0.. {
            let subject = format!("new {number}");
            let hits = join_all((0..2 * LIMIT).map(|_| limiter.hit(&subject))).await;
            let decisions: Vec<_> = hits.into_iter().map(Result::unwrap).collect();
            let degraded = decisions.iter().find(|decision| decision.is_degraded());
            let Some(degraded) = degraded else {
                let admitted = decisions.iter().filter(|decision| decision.is_allowed());
                assert_eq!(u64::try_from(admitted.count()), Ok(LIMIT), "{mode:?}");
                break;
            };
            assert!(started.elapsed() < BACK_WITHIN, "{mode:?}: {degraded:?}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

/// What holds whatever happens to a store, as long as it keeps what it was told; `server` is that store, well again and
/// with nothing around it.
pub(crate) async fn every_promise_holds(outcomes: &[Outcome], server: &SharedStore) {
    for outcome in outcomes {
        outcome.keeps_callers_going();
        let Seen {
            open,
            closed,
            fallback,
        } = &outcome.seen;
        assert!(open.admitted_unjudged > 0, "nobody noticed anything");
        assert_eq!(closed.over(LIMIT), 0, "admitted uncounted");
        assert!(
            fallback.most_over(LIMIT) <= share_of(LIMIT),
            "more than the share"
        );
        outcome.is_counted_by(server).await;
    }
}

impl Outcome {
    /// What holds for a store that lies or forgets, too.
    pub(crate) fn keeps_callers_going(&self) {
        let Seen {
            open,
            closed,
            fallback,
        } = &self.seen;
        for tally in [open, closed, fallback] {
            assert!(tally.longest <= BOUND + MARGIN, "{:?}", tally.longest);
        }
        assert_eq!(open.denied_unjudged, 0, "open means admitted");
        assert_eq!(closed.admitted_unjudged, 0, "closed means denied");
        // A stand-in leaves to the failure mode what does not pass by itself.
        assert_eq!(fallback.admitted_unjudged, 0, "else denied");
    }

    /// What was admitted is what the server has counted, but for hits of which nobody knows whether they were charged.
    async fn is_counted_by(&self, server: &SharedStore) {
        let limiter = limiter(server, self.stack, FailureMode::Closed);
        let subjects = self.seen.closed.subjects.iter();
        join_all(subjects.map(async |(name, subject)| {
            let decision = limiter.peek(name).await.unwrap();
            assert!(!decision.is_degraded(), "{decision:?}");
            let counted = LIMIT - decision.remaining();
            let most = LIMIT.min(subject.admitted + subject.unknown);
            assert!(
                (subject.admitted..=most).contains(&counted),
                "{name}: {counted} counted, {subject:?}"
            );
        }))
        .await;
    }

    #[expect(
        clippy::print_stdout,
        reason = "the figures are for readers of the guide"
    )]
    fn print(&self) {
        let Seen {
            open,
            closed,
            fallback,
        } = &self.seen;
        let all = [open, closed, fallback];
        let sum = |part: fn(&Tally) -> u64| all.into_iter().map(part).sum::<u64>();
        let mut errors = BTreeMap::<_, u64>::new();
        for (kind, count) in all.into_iter().flat_map(|tally| &tally.errors) {
            *errors.entry(kind).or_default() += count;
        }
        let errors: Vec<_> = errors
            .iter()
            .map(|(kind, count)| format!("{count} {kind}"))
            .collect();
        let longest = all.into_iter().map(|tally| tally.longest).max();
        println!(
            "| {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} ms | {:.1} s |",
            self.scene.store,
            self.scene.fault,
            self.stack,
            sum(|tally| tally.sent),
            sum(|tally| tally.sent - tally.degraded()),
            sum(Tally::degraded),
            sum(Tally::admitted),
            closed.over(LIMIT),
            fallback.most_over(LIMIT),
            errors.join(", "),
            longest.unwrap_or_default().as_millis(),
            self.back_after.as_secs_f64(),
        );
    }
}
