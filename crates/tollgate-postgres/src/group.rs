//! Group commit: questions that come while a statement is under way go together in the next one.
//!
//! No question waits for a timer. One that finds its lane empty leaves at once; while it is under way others gather, and the
//! statement after it takes them all. Each is still judged on its own, in the order in which they came.
//!
//! A task of its own drives a lane's statements. So a caller who goes away takes nobody along, and neither does one whose
//! future is kept but not polled.

mod kept;

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use futures::stream::{self, StreamExt};
use parking_lot::Mutex;
use sqlx::Postgres;
use sqlx::pool::PoolConnection;
use tokio::runtime::Handle;
use tokio::sync::{Notify, oneshot};
use tokio::time::timeout;
use tollgate_core::{ErrorKind, Verdicts};

use crate::error::Failure;
use crate::flight::Pilot;
use crate::group::kept::{KEPT_FOR, Kept};
use crate::question::Question;

/// The most checks in one statement, so that none holds its rows for long.
const MAX_CHECKS: usize = 128;
/// How many statements the questions of a failed one are asked again in, at the same time.
const APART: usize = 2;
/// How many keys are remembered as held by others.
const MAX_HELD: usize = 1024;

type Answer = Result<Verdicts, Failure>;

/// The lanes of a store.
#[derive(Debug)]
pub(crate) struct Group {
    pilot: Arc<Pilot>,
    lanes: Box<[Arc<Lane>]>,
    /// Where questions go whose keys another session holds, so that they do not delay those of other keys.
    slow: Arc<Lane>,
    held: Arc<Mutex<HashSet<Box<[u8]>>>>,
    kept: Arc<Kept>,
    hasher: RandomState,
}

#[derive(Debug, Default)]
struct Lane {
    queue: Mutex<Queue>,
    /// Wakes a driver that has nothing to send.
    arrived: Notify,
}

#[derive(Debug, Default)]
struct Queue {
    waiting: Vec<Waiting>,
    /// Whether a task drives the lane.
    driven: bool,
}

#[derive(Debug)]
struct Waiting {
    question: Question,
    answer: oneshot::Sender<Answer>,
}

impl Group {
    pub(crate) fn new(pilot: Arc<Pilot>, lanes: usize) -> Self {
        Self {
            pilot,
            lanes: (0..lanes).map(|_| Arc::default()).collect(),
            slow: Arc::default(),
            held: Arc::default(),
            kept: Arc::default(),
            hasher: RandomState::new(),
        }
    }

    /// Asks `question` in the next statement of its lane.
    pub(crate) async fn ask(&self, question: Question) -> Answer {
        let Ok(runtime) = Handle::try_current() else {
            let message = "called outside of a tokio runtime; call it from a task, or inside of Runtime::block_on";
            return Err(Failure::new(ErrorKind::Unsupported, message));
        };
        let lane = self.lane_of(&question);
        let (answer, answered) = oneshot::channel();
        let starts = {
            let mut queue = lane.queue.lock();
            queue.waiting.push(Waiting { question, answer });
            !std::mem::replace(&mut queue.driven, true)
        };
        if starts {
            let driver = Driver {
                pilot: Arc::clone(&self.pilot),
                held: Arc::clone(&self.held),
                kept: Arc::clone(&self.kept),
                lane: Arc::clone(lane),
            };
            runtime.spawn(driver.drive());
        } else {
            lane.arrived.notify_one();
        }
        answered.await.unwrap_or_else(|_| {
            // The driver panics on some answers that no server gives.
            let message = "the task that carried the statement is gone: its tokio runtime has been shut down, \
                or the driver panicked on what came back";
            Err(Failure::new(ErrorKind::Unavailable, message).with_charge_unknown())
        })
    }

    /// Questions about one subject share a lane, so that they never wait for each other's rows.
    fn lane_of(&self, question: &Question) -> &Arc<Lane> {
        let held = self.held.lock();
        if !held.is_empty() && question.keys().any(|key| held.contains(key)) {
            return &self.slow;
        }
        let hash = self.hasher.hash_one(question.first_subject());
        let lanes = u64::try_from(self.lanes.len()).unwrap_or(u64::MAX);
        let index = usize::try_from(hash % lanes).unwrap_or(0);
        &self.lanes[index]
    }
}

/// Sends one lane's statements, one after the other, until nobody has come for a while.
struct Driver {
    pilot: Arc<Pilot>,
    held: Arc<Mutex<HashSet<Box<[u8]>>>>,
    kept: Arc<Kept>,
    lane: Arc<Lane>,
}

impl Driver {
    async fn drive(self) {
        let mut ends = EndsWithItsTask(Some(&self.lane));
        // Kept while there is more to send, which spares the pool's check of every connection it hands out.
        let mut connection = None;
        let mut waits = true;
        loop {
            let group = {
                let mut queue = self.lane.queue.lock();
                let group = take(&mut queue.waiting);
                if group.is_empty() && !waits {
                    queue.driven = false;
                    ends.0 = None;
                    return;
                }
                group
            };
            if group.is_empty() {
                connection = self.wait(connection).await;
                waits = connection.is_some();
                continue;
            }
            if connection.is_none() {
                connection = self.kept.take();
            }
            self.carry(group, &mut connection).await;
            if !self.pilot.has_spare_connections() {
                connection = None;
            }
            waits = connection.is_some();
        }
    }

    /// Waits a moment for the next question, with `connection` at hand. Returns one if there may be such a question.
    async fn wait(
        &self,
        connection: Option<PoolConnection<Postgres>>,
    ) -> Option<PoolConnection<Postgres>> {
        let keeping = self.kept.keep(connection?);
        let arrived = timeout(KEPT_FOR, self.lane.arrived.notified()).await;
        arrived.ok().and_then(|()| keeping.take())
    }

    async fn carry(&self, group: Vec<Waiting>, kept: &mut Option<PoolConnection<Postgres>>) {
        let failure = match self.ask_together(&group, kept).await {
            Ok(answers) => return deliver(group, answers.into_iter().map(Ok)),
            Err(failure) => failure,
        };
        let mut parts = by_keys(group);
        if parts.len() == 1 || !failure.may_be_one_questions_fault() {
            for part in parts {
                self.fail(part, &failure);
            }
            return;
        }
        // One of them may have failed the others. Nothing was charged, so each can be asked on its own.
        let ask_apart = parts.drain(..).map(|part| async {
            match self.ask_together(&part, &mut None).await {
                Ok(answers) => deliver(part, answers.into_iter().map(Ok)),
                Err(failure) => self.fail(part, &failure),
            }
        });
        stream::iter(ask_apart)
            .buffer_unordered(APART)
            .collect::<()>()
            .await;
    }

    async fn ask_together(
        &self,
        group: &[Waiting],
        kept: &mut Option<PoolConnection<Postgres>>,
    ) -> Result<Vec<Verdicts>, Failure> {
        let questions: Vec<&Question> = group.iter().map(|waiting| &waiting.question).collect();
        let answers = self.pilot.fly(&questions, None, kept).await?;
        let mut held = self.held.lock();
        if !held.is_empty() {
            for key in questions.iter().flat_map(|question| question.keys()) {
                held.remove(key);
            }
        }
        Ok(answers)
    }

    /// Tells everybody in `part`, whose questions are about the same keys.
    fn fail(&self, part: Vec<Waiting>, failure: &Failure) {
        if failure.kind == ErrorKind::Timeout && !failure.may_have_charged {
            let mut held = self.held.lock();
            if held.len() >= MAX_HELD {
                held.clear();
            }
            let questions = part.iter().take(1);
            held.extend(questions.flat_map(|waiting| waiting.question.keys().map(Box::from)));
        }
        deliver(part, std::iter::repeat_with(|| Err(failure.clone())));
    }
}

/// Should the task be dropped on its way, with its runtime, the lane is left so that another task can take it up.
struct EndsWithItsTask<'a>(Option<&'a Arc<Lane>>);

impl Drop for EndsWithItsTask<'_> {
    fn drop(&mut self) {
        if let Some(lane) = self.0 {
            let mut queue = lane.queue.lock();
            queue.driven = false;
            queue.waiting.clear();
        }
    }
}

/// The questions of the next statement, as they came. Who has gone away in the meantime is not asked for.
fn take(waiting: &mut Vec<Waiting>) -> Vec<Waiting> {
    waiting.retain(|waiting| !waiting.answer.is_closed());
    let mut checks = 0;
    let fitting = waiting.iter().take_while(|waiting| {
        checks += waiting.question.len();
        checks <= MAX_CHECKS
    });
    let count = fitting.count();
    let mut group: Vec<Waiting> = waiting.drain(..count).collect();
    if group.iter().all(|waiting| waiting.question.len() == 1) {
        // Questions about different keys do not meet, so their order is free: hits on one log side by side share its
        // reading. The sort is stable: on one key the order stays.
        group.sort_by(|one, other| one.question.keys().cmp(other.question.keys()));
    }
    group
}

fn deliver(group: Vec<Waiting>, answers: impl Iterator<Item = Answer>) {
    for (waiting, answer) in group.into_iter().zip(answers) {
        // Nobody may be left to hear it.
        let _ = waiting.answer.send(answer);
    }
}

/// Those whose questions are about the same keys together, each in their order.
fn by_keys(group: Vec<Waiting>) -> Vec<Vec<Waiting>> {
    let mut parts: Vec<Vec<Waiting>> = Vec::new();
    for waiting in group {
        let same = parts
            .iter_mut()
            .find(|part| part[0].question.keys().eq(waiting.question.keys()));
        match same {
            Some(part) => part.push(waiting),
            None => parts.push(vec![waiting]),
        }
    }
    parts
}
