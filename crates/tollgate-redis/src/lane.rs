//! Hits that arrive while a call is under way travel together in the next one.
//!
//! A caller who finds nothing under way calls by itself: no task is spawned, nothing is waited for. Everybody who
//! comes while that call or another is under way is queued, and a task of its own carries the queue to the server, one
//! bounded call after the other, until it is empty. That task never waits for a caller's future, which may be dropped
//! or not be polled for as long as its owner likes.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tollgate_core::{Result, Verdicts};

use crate::counter::Tally;
use crate::error::Failure;
use crate::request::{Question, Request};
use crate::store::Inner;

/// A queue to one place and for one way of judging: what travels in one call has both in common.
#[derive(Debug, Default)]
pub(crate) struct Lane(Mutex<Queue>);

#[derive(Debug, Default)]
struct Queue {
    /// Whether a caller's own call is under way.
    direct: bool,
    /// Tasks that carry the queue.
    carriers: usize,
    waiting: VecDeque<Waiting>,
}

#[derive(Debug)]
struct Waiting {
    questions: Vec<Question>,
    answer: oneshot::Sender<Result<Verdicts>>,
}

/// The most one call may weigh, in microseconds of the server's time, give or take: a call never holds the server for
/// much longer than half a millisecond, unless a single batch does.
const CALL_WEIGHT: u32 = 500;
/// While one call is under way, another one may set out once so many batches wait.
const MAX_CARRIERS: usize = 2;
const FULL: usize = 64;

/// What a caller who comes to a lane is to do.
enum Place {
    /// Call alone; nothing is under way.
    Direct(Vec<Question>),
    /// Wait for the answer of a call that somebody else makes, after starting a carrier if `start` says so.
    Queued {
        answer: oneshot::Receiver<Result<Verdicts>>,
        start: bool,
    },
}

impl Lane {
    /// Asks for one batch: alone if the lane is empty, together with others otherwise.
    pub(crate) async fn ask(
        self: Arc<Self>,
        inner: &Arc<Inner>,
        questions: Vec<Question>,
    ) -> Result<Verdicts> {
        match self.enter(questions) {
            Place::Direct(questions) => {
                let _direct = Direct(&self);
                inner.ask_direct(&questions).await
            }
            Place::Queued { answer, start } => {
                if start {
                    Carrier::start(inner.clone(), self, &Handle::current());
                }
                let abandoned = |_| Err(Failure::Abandoned.into());
                answer.await.unwrap_or_else(abandoned)
            }
        }
    }

    fn enter(&self, questions: Vec<Question>) -> Place {
        let mut queue = self.lock();
        if queue.carriers == 0 && !queue.direct {
            queue.direct = true;
            return Place::Direct(questions);
        }
        let (answer, receiver) = oneshot::channel();
        queue.waiting.push_back(Waiting { questions, answer });
        let start =
            queue.carriers == 0 || (queue.carriers < MAX_CARRIERS && queue.waiting.len() >= FULL);
        if start {
            queue.carriers += 1;
        }
        Place::Queued {
            answer: receiver,
            start,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        // The queue is consistent whenever the lock is given back: nothing in between can panic.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Batches that travel together: some in the script's request, hits on counters in a tally. A lane carries only one kind.
#[derive(Default)]
struct Call {
    request: Request,
    tally: Tally,
    passengers: Vec<Waiting>,
}

impl Call {
    fn weight(&self) -> u32 {
        self.request.weight() + self.tally.weight()
    }

    fn push(&mut self, next: Waiting) {
        match next.questions[..] {
            [
                Question {
                    ref name,
                    count: Some(hit),
                    ..
                },
            ] => self.tally.push(name, hit),
            _ => self.request.push(&next.questions),
        }
        self.passengers.push(next);
    }
}

impl Queue {
    /// Takes as many batches from the front as one call may carry, at least one. Who has stopped waiting is left out.
    fn next_call(&mut self) -> Call {
        let mut call = Call::default();
        while call.weight() < CALL_WEIGHT
            && let Some(next) = self.waiting.pop_front()
        {
            if !next.answer.is_closed() {
                call.push(next);
            }
        }
        call
    }
}

/// A caller's own call; says when it is over, however it ends.
struct Direct<'a>(&'a Lane);

impl Drop for Direct<'_> {
    fn drop(&mut self) {
        self.0.lock().direct = false;
    }
}

/// A task that carries the queue; says when it is over, however it ends.
struct Carrier {
    inner: Arc<Inner>,
    lane: Arc<Lane>,
    /// Whether the queue was found empty, and the task no longer counts.
    done: bool,
}

impl Carrier {
    fn start(inner: Arc<Inner>, lane: Arc<Lane>, runtime: &Handle) {
        let carrier = Self {
            inner,
            lane,
            done: false,
        };
        runtime.spawn(carrier.carry());
    }

    async fn carry(mut self) {
        while let Some(call) = self.next() {
            self.inner.ask_together(call).await;
        }
    }

    fn next(&mut self) -> Option<Call> {
        let mut queue = self.lane.lock();
        let call = queue.next_call();
        if call.passengers.is_empty() {
            // Under the same lock as the look at the queue, so that nobody joins a queue that is not carried.
            queue.carriers -= 1;
            self.done = true;
            return None;
        }
        Some(call)
    }
}

impl Drop for Carrier {
    /// A carrier that is dropped with its runtime lets go of everybody who waits, if it was the last one: they are
    /// told, and the next caller starts afresh.
    fn drop(&mut self) {
        if self.done {
            return;
        }
        let mut queue = self.lane.lock();
        queue.carriers -= 1;
        if queue.carriers == 0 {
            queue.waiting.clear();
        }
    }
}

impl Inner {
    async fn ask_direct(&self, questions: &[Question]) -> Result<Verdicts> {
        match questions {
            [
                Question {
                    name,
                    count: Some(hit),
                    ..
                },
            ] => {
                let mut tally = Tally::default();
                tally.push(name, *hit);
                self.count(tally).await?.verdicts(0)
            }
            _ => self.ask_alone(None, questions).await,
        }
    }

    async fn ask_together(&self, call: Call) {
        if call.tally.weight() > 0 {
            let counted = self.count(call.tally).await;
            for (index, waiting) in call.passengers.into_iter().enumerate() {
                waiting.answer(match &counted {
                    Ok(counted) => counted.verdicts(index),
                    Err(failure) => Err(failure.clone().into()),
                });
            }
            return;
        }
        let mut reply = self.call(&call.request).await;
        for waiting in call.passengers {
            let verdicts = match &mut reply {
                Ok(reply) => reply.next(&waiting.questions),
                Err(failure) => Err(failure.clone().into()),
            };
            waiting.answer(verdicts);
        }
    }
}

impl Waiting {
    fn answer(self, verdicts: Result<Verdicts>) {
        // Who has stopped waiting meanwhile has no use for the answer.
        let _ = self.answer.send(verdicts);
    }
}
