//! core

mod quota;

pub use quota::{Quota, QuotaError};
