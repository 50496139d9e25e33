#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod binary;
mod case;
mod cases;
mod client;
mod compare;
mod counter;
mod differential;
mod golden;
mod harness;
mod offer;
mod options;
mod outcome;
mod reference;
mod run;
mod testbed;

pub use binary::{main, main_with};
pub use case::Family;
pub use harness::{Fresh, Harness};
pub use offer::{BoxError, Held, Offer, Offered, Outage, Plant};
pub use options::{Options, OptionsError};
pub use reference::ReferenceStore;
pub use run::{CaseResult, Ending, case_names, run};
