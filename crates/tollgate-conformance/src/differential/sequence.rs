//! What is played: some keys, and what happens to them.

use std::fmt;

use tollgate_core::{Op, Policy, Timestamp};

use crate::counter::{Counter, describe};

/// Some keys, and what happens to them.
#[derive(Clone, Debug)]
pub(crate) struct Sequence {
    pub(crate) slots: Vec<Slot>,
    pub(crate) steps: Vec<Step>,
}

/// A key, and the policies it is judged under at one time or another.
#[derive(Clone, Debug)]
pub(crate) struct Slot {
    pub(crate) scope: String,
    pub(crate) subject: String,
    pub(crate) policies: Vec<Policy>,
}

impl Slot {
    pub(crate) fn counter(&self, prefix: &str, policy: usize) -> Counter {
        let policy = self.policies[policy].clone();
        Counter::new(prefix, &self.scope, policy, self.subject.as_bytes())
    }
}

#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// One batch.
    Ask {
        at: Timestamp,
        asks: Vec<Ask>,
        /// By [`Store::apply_now`](tollgate_core::Store::apply_now).
        at_once: bool,
    },
    /// The keys to forget.
    Reset(Vec<usize>),
}

/// One check of a batch: an operation on a slot under one of its policies.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ask {
    pub(crate) slot: usize,
    pub(crate) policy: usize,
    pub(crate) op: Op,
}

impl fmt::Display for Sequence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, step) in self.steps.iter().enumerate() {
            write!(f, "  {}. ", index + 1)?;
            match step {
                Step::Reset(slots) => writeln!(f, "reset keys {slots:?}")?,
                Step::Ask { at, asks, at_once } => {
                    write!(f, "at {at}{}", if *at_once { " at once" } else { "" })?;
                    for Ask { slot, policy, op } in asks {
                        let policy = &self.slots[*slot].policies[*policy];
                        write!(f, ", key {slot}: {} under {policy}", describe(*op))?;
                        if let Some(offset) = policy.utc_offset_minutes() {
                            write!(f, " aligned to {offset} minutes")?;
                        }
                    }
                    writeln!(f)?;
                }
            }
        }
        Ok(())
    }
}
