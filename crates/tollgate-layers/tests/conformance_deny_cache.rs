//! The conformance kit on a memory store whose denials are remembered.

use std::process::ExitCode;

use tollgate_layers::DenyCache;
use tollgate_memory::MemoryStore;

fn main() -> ExitCode {
    tollgate_conformance::main("deny-cache", || async {
        Ok(DenyCache::new(MemoryStore::new()))
    })
}
