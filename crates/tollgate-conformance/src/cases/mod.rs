//! The stories, by family.

mod batch;
mod clock;
mod concurrency;
mod failure;
mod hygiene;
mod stored_state;

use crate::case::Case;
use crate::{differential, golden};

/// Every case there is.
pub(crate) fn all() -> Vec<Case> {
    [
        golden::cases(),
        differential::cases(),
        batch::cases(),
        concurrency::cases(),
        clock::cases(),
        failure::cases(),
        hygiene::cases(),
        stored_state::cases(),
    ]
    .concat()
}
