//! The conformance kit on a memory store that another stands in for, and never has to.

use std::process::ExitCode;

use tollgate_layers::{Fallback, Share};
use tollgate_memory::MemoryStore;

fn main() -> ExitCode {
    tollgate_conformance::main("fallback", || async {
        Ok(Fallback::new(MemoryStore::new(), Share::of(1, 4)?))
    })
}
