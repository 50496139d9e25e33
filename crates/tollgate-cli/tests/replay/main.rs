//! `tollgate replay` as its users run it: the real program on files and pipes.

mod output;
mod program;
mod refusals;
mod traffic;
