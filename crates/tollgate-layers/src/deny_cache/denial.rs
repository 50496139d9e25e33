//! What a denial says of a key, and what follows from it later.

use std::time::Duration;

use tollgate_core::{Check, Cost, Op, PolicyDecision, Rule, State, Timestamp, Verdict, Verdicts};

/// A reading of the clock that time is told by: the cache's own, or the instants that batches name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Moment {
    pub(super) reading: Timestamp,
    pub(super) named: bool,
}

/// What a key's denial tells of it.
#[derive(Clone, Debug)]
pub(super) struct Denial {
    /// The rule it was judged by.
    rule: Rule,
    told: Told,
    /// The reading of the store's clock that it was judged by.
    judged_at: Timestamp,
    /// When the store was asked. It judged then or later, so time counted from here never lags behind the store's.
    asked_at: Moment,
    /// How long after that it answers.
    lives: Duration,
}

#[derive(Clone, Debug)]
enum Told {
    /// The state of the key; `None` if it is as good as new.
    State(Option<State>),
    /// A sliding log that lacked one unit. Nothing in it expires before the unit does, so the verdict stands until then.
    Log {
        cost: Cost,
        verdict: Verdict,
        until: Timestamp,
    },
}

impl Denial {
    /// What `verdict`, on a hit of `check` in a denied batch, tells; `None` if that is not enough to answer from.
    pub(super) fn new(
        check: &Check<'_>,
        verdict: Verdict,
        judged_at: Timestamp,
        asked_at: Moment,
        lives: Duration,
    ) -> Option<Self> {
        let rule = *check.policy.rule();
        let told = match rule {
            Rule::SlidingLog(log) => {
                let cost = check.op.cost();
                let used = rule.used(&verdict, judged_at);
                if verdict.is_allowed() || used.checked_add(cost.get())? != log.limit() + 1 {
                    return None;
                }
                let denied =
                    PolicyDecision::from_verdict(check.policy, verdict, judged_at, cost, false);
                let until = judged_at + denied.retry_after()?;
                Told::Log {
                    cost,
                    verdict,
                    until,
                }
            }
            _ => Told::State(rule.state_behind(&verdict, judged_at)),
        };
        Some(Self {
            rule,
            told,
            judged_at,
            asked_at,
            lives,
        })
    }

    pub(super) const fn lives(&self) -> Duration {
        self.lives
    }

    /// The store's time at `moment`; `None` if the denial answers no more, or is told by another clock.
    pub(super) fn store_time(&self, moment: Moment) -> Option<Timestamp> {
        if moment.named != self.asked_at.named || moment.reading < self.asked_at.reading {
            return None;
        }
        let elapsed = moment.reading.saturating_since(self.asked_at.reading);
        (elapsed < self.lives).then(|| self.judged_at + elapsed)
    }

    /// What the store would answer to `check` at `now` if nobody charged or settled in between; `None` if that cannot
    /// be told.
    pub(super) fn verdict(&self, check: &Check<'_>, now: Timestamp) -> Option<Verdict> {
        let (Op::Hit(cost) | Op::Peek(cost)) = check.op else {
            return None;
        };
        if self.rule != *check.policy.rule() {
            return None;
        }
        match &self.told {
            Told::State(state) => {
                let mut state = state.clone();
                Some(self.rule.step(&mut state, now, Op::Peek(cost)))
            }
            Told::Log {
                cost: denied,
                verdict,
                until,
            } => (cost == *denied && now < *until).then_some(*verdict),
        }
    }

    /// Whether both were told by one batch, so that they speak of one instant.
    pub(super) fn is_told_with(&self, other: &Self) -> bool {
        (self.judged_at, self.asked_at) == (other.judged_at, other.asked_at)
    }
}

/// How long the whole of a denied `batch` stays denied if nobody gives anything back; `None` if it never fits.
pub(super) fn stays_denied(checks: &[Check<'_>], verdicts: &Verdicts) -> Option<Duration> {
    let mut waits = checks.iter().enumerate().map(|(index, check)| {
        let cost = check.op.cost();
        PolicyDecision::from_verdicts(check.policy, verdicts, index, cost, false).retry_after()
    });
    waits.try_fold(Duration::ZERO, |longest, wait| Some(longest.max(wait?)))
}
