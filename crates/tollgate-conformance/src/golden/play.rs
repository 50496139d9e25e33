//! Plays a vector on a store.

use std::collections::HashMap;

use crate::counter::{Answer, Counter};
use crate::golden::vector::{Action, Expected, Step, Vector};
use crate::outcome::{Outcome, ensure_eq};
use crate::testbed::TestBed;

pub(crate) async fn play(bed: &TestBed, vector: &Vector) -> Outcome {
    bed.needs_virtual_time()?;
    let mut receipts = HashMap::new();
    for (index, step) in vector.steps.iter().enumerate() {
        let counter = bed.scoped("", "golden", step.policy.clone());
        for _ in 0..step.times {
            take(bed, &counter, step, &mut receipts)
                .await
                .map_err(|stop| stop.context(format!("in step {}", index + 1)))?;
        }
    }
    Ok(())
}

async fn take<'v>(
    bed: &TestBed,
    counter: &Counter,
    step: &'v Step,
    receipts: &mut HashMap<&'v str, Answer>,
) -> Outcome {
    let moment = bed.at_instant(step.at);
    match &step.action {
        Action::Hit {
            cost,
            receipt,
            expect,
        } => {
            let answer = moment.hit(counter, cost.get()).await?;
            compare(&answer, expect)?;
            if let Some(name) = receipt {
                receipts.insert(name, answer);
            }
        }
        Action::Peek { cost, expect } => {
            compare(&moment.peek(counter, cost.get()).await?, expect)?;
        }
        Action::Settle {
            receipt,
            actual,
            expect,
        } => {
            let settlement = receipts[receipt.as_str()].settled_at(*actual);
            compare(&moment.settle(counter, settlement).await?, expect)?;
        }
        Action::Reset { existed } => {
            let forgotten = bed.reset([counter]).await?;
            ensure_eq!(
                forgotten,
                u64::from(*existed),
                "a reset says how many keys there were"
            );
        }
    }
    Ok(())
}

fn compare(answer: &Answer, expected: &Expected) -> Outcome {
    let got = Expected {
        allowed: answer.allowed,
        remaining: answer.remaining,
        retry_after: answer.retry_after,
        reset_after: answer.reset_after,
        delay: answer.delay,
    };
    ensure_eq!(
        got,
        *expected,
        "the answer differs from the one worked out by hand"
    );
    Ok(())
}
