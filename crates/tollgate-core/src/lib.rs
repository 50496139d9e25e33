#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod algorithm;
mod batch;
mod cas;
mod clock;
mod codec;
mod cost;
mod decision;
mod error;
mod key;
mod limiter;
mod policy;
mod quota;
mod shared;
mod store;
mod time;

pub use algorithm::{Algorithm, Family, Op, Rule, Settlement, State, Verdict};
pub use batch::{Batch, Check, Verdicts};
pub use cas::{CasBackend, CasStore, CasWrite, Loaded};
pub use clock::{Clock, ManualClock, SystemClock};
pub use cost::Cost;
pub use decision::{Decision, PolicyDecision, Report, Source};
pub use error::{Error, ErrorKind, Result};
pub use key::{Key, Space, join_subject};
#[cfg(feature = "tokio")]
pub use limiter::Acquire;
pub use limiter::{FailureMode, Limiter, Policies, Receipt, Reservation};
pub use policy::Policy;
pub use quota::{ParseQuotaError, ParseQuotaErrorKind, Quota, QuotaError, QuotaList};
pub use shared::SharedStore;
pub use store::{Capabilities, InProcessStore, Store};
pub use time::Timestamp;
