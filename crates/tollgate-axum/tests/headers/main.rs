//! Headers: what clients read of a decision.

mod options;
mod over_http;
mod properties;
mod setup;
mod shadows;
mod stacked;
mod structured;
mod vectors;
