//! The `tollgate` program.
mod replay;

fn main() {}
