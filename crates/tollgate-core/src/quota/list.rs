//! Several quotas that hold together.

use std::fmt;
use std::slice;
use std::str::FromStr;
use std::vec;

use super::parse::parse_list;
use super::{ParseQuotaError, Quota, QuotaError};

/// One or more quotas, in the order in which they were written.
///
/// The list is never empty. Order and repetitions are kept: all quotas of a list hold at once, so a
/// repetition or a looser quota of the same period changes nothing.
///
/// # Examples
///
/// ```
/// use tollgate_core::{Quota, QuotaList};
///
/// let list: QuotaList = "10/second; 1000/hour".parse()?;
/// assert_eq!(list.as_slice(), [Quota::per_second(10), Quota::per_hour(1_000)]);
/// assert_eq!(list.to_string(), "10/second; 1000/hour");
/// # Ok::<(), tollgate_core::ParseQuotaError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct QuotaList {
    quotas: Vec<Quota>,
}

impl QuotaList {
    /// The quotas; at least one.
    #[must_use]
    pub fn as_slice(&self) -> &[Quota] {
        &self.quotas
    }

    /// The quotas in order.
    ///
    /// # Examples
    ///
    /// ```
    /// use tollgate_core::{Quota, QuotaList};
    ///
    /// let list = QuotaList::from(Quota::per_day(1));
    /// assert_eq!(list.iter().map(Quota::limit).sum::<u64>(), 1);
    /// ```
    pub fn iter(&self) -> slice::Iter<'_, Quota> {
        self.quotas.iter()
    }
}

/// Reads quotas separated by `;` or `,`, such as `10/second; 1000/hour`.
///
/// A comma directly between two digits is refused, because it may as well group the digits of one
/// number. Nothing may precede the first quota or follow the last one.
///
/// # Errors
///
/// [`ParseQuotaError`], whose column counts over the whole list.
///
/// # Examples
///
/// ```
/// use tollgate_core::QuotaList;
///
/// let error = "10/second; 1000/hour;".parse::<QuotaList>().unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     "column 21: no quota after \";\"; expected another quota, or no separator at the end"
/// );
/// ```
impl FromStr for QuotaList {
    type Err = ParseQuotaError;

    fn from_str(text: &str) -> Result<Self, ParseQuotaError> {
        let quotas = parse_list(text)?;
        Ok(Self { quotas })
    }
}

/// The canonical quotas, separated by `; `. It parses back to the same list.
impl fmt::Display for QuotaList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, quota) in self.quotas.iter().enumerate() {
            let separator = if index == 0 { "" } else { "; " };
            write!(f, "{separator}{quota}")?;
        }
        Ok(())
    }
}

impl From<Quota> for QuotaList {
    fn from(quota: Quota) -> Self {
        Self {
            quotas: vec![quota],
        }
    }
}

/// Fails with [`QuotaError::EmptyList`] when there is no quota.
///
/// # Examples
///
/// ```
/// use tollgate_core::{Quota, QuotaError, QuotaList};
///
/// assert!(QuotaList::try_from(vec![Quota::per_second(10), Quota::per_hour(1_000)]).is_ok());
/// assert_eq!(QuotaList::try_from(vec![]), Err(QuotaError::EmptyList));
/// ```
impl TryFrom<Vec<Quota>> for QuotaList {
    type Error = QuotaError;

    fn try_from(quotas: Vec<Quota>) -> Result<Self, QuotaError> {
        if quotas.is_empty() {
            return Err(QuotaError::EmptyList);
        }
        Ok(Self { quotas })
    }
}

impl IntoIterator for QuotaList {
    type Item = Quota;
    type IntoIter = vec::IntoIter<Quota>;

    fn into_iter(self) -> Self::IntoIter {
        self.quotas.into_iter()
    }
}

impl<'a> IntoIterator for &'a QuotaList {
    type Item = &'a Quota;
    type IntoIter = slice::Iter<'a, Quota>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}
