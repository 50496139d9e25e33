//! A caller's own statement, for a lane that is empty.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::runtime::Handle;

use super::{Answer, Driver, Lane};
use crate::question::Question;

type Flight = Pin<Box<dyn Future<Output = Answer> + Send>>;

/// Asks `question` in a statement of its own. The lane was entered for it.
pub(super) async fn ask(driver: Driver, question: Question, runtime: Handle) -> Answer {
    let direct = Direct(Arc::clone(&driver.lane));
    let flight = Box::pin(async move {
        let answer = driver.ask_alone(&question).await;
        drop(direct);
        answer
    });
    Landing {
        flight: Some(flight),
        runtime,
    }
    .await
}

/// Says that the caller's own statement is over, however it ends.
struct Direct(Arc<Lane>);

impl Drop for Direct {
    fn drop(&mut self) {
        self.0.queue.lock().direct = false;
    }
}

/// The statement under way. If its caller goes away, a task sees it to its end, so that the connection is given back in
/// order, or given up when its time is over.
struct Landing {
    flight: Option<Flight>,
    runtime: Handle,
}

impl Future for Landing {
    type Output = Answer;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Answer> {
        let Some(flight) = &mut self.flight else {
            // Nobody polls a future again that was ready; if somebody does, nothing is left to wait for.
            return Poll::Pending;
        };
        let answer = flight.as_mut().poll(context);
        if answer.is_ready() {
            self.flight = None;
        }
        answer
    }
}

impl Drop for Landing {
    fn drop(&mut self) {
        if let Some(flight) = self.flight.take() {
            self.runtime.spawn(flight);
        }
    }
}
