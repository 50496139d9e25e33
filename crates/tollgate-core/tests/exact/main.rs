//! The algorithms proved: against a slow model in exact arithmetic, and against what they promise.

mod against_the_model;
mod draw;
mod extremes;
mod model;
mod play;
mod reset_after;
mod retry_after;
mod script;
mod subject;
