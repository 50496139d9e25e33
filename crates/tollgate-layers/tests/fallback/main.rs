//! A store that goes away, and what is admitted before, while and after it does.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

mod hand_back;
mod modes;
mod promises;
mod resetting;
mod settling;
mod share;
mod standing_in;
mod stores;
