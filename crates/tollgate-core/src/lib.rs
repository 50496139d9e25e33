//! core

mod quota;

pub use quota::{ParseQuotaError, ParseQuotaErrorKind, Quota, QuotaError, QuotaList};
