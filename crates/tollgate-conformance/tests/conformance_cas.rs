//! `CasStore` over a map that stands for a server.

mod map_harness;

use map_harness::MapHarness;
use tollgate_core::CasStore;

fn main() -> std::process::ExitCode {
    tollgate_conformance::main_with(MapHarness::new("cas", CasStore::new))
}
