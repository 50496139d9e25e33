//! Denials: what a client is told that is not let through.

mod documents;
mod negotiation;
