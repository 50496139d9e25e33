//! The algorithms proved: against a slow model in exact arithmetic, and against what they promise.

mod against_the_model;
mod agreement;
mod behind_a_verdict;
mod bursts;
mod clock_steps;
mod draw;
mod extremes;
mod foreign_states;
mod leaky_queue;
mod model;
mod more_after;
mod never;
mod play;
mod quota_changes;
mod reset_after;
mod retry_after;
mod script;
mod settlement;
mod subject;
mod upper_bounds;
