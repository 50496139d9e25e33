//! A share of a limit, and the policy that comes of it.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use tollgate_core::{Error, ErrorKind, Family, Policy, Quota, QuotaError, Result};

/// The share of every limit that one process enforces while the store is away, as a ratio of whole numbers.
///
/// Each of four replicas takes `Share::of(1, 4)?`. Shares may differ; what matters is that they add up to one at most.
/// Where the number of replicas changes, use the largest.
///
/// # What comes of a quota
///
/// - A window or a log of `limit` per period has `floor(limit * share)`, in the same windows.
/// - A bucket has room for `floor(burst * share)` and refills at exactly `limit * share`: `10/minute` at a quarter is
///   `5/2 minutes burst 2`. (Where that would be a period beyond [`Quota::MAX_PERIOD`], at the whole units of it.)
/// - Both are at least 1, or replicas of small limits would deny everything: a limit of 3 at a quarter is 1. Where
///   `limit * share` is less than one unit, all replicas together admit one unit each instead of the limit.
/// - A limit of 0 stays blocked.
/// - Where a window's limit or a bucket's burst cannot be counted exactly ([`Quota`] tells which), it is halved until
///   it can. That takes limits of more than a hundred million.
///
/// ```
/// use tollgate_layers::Share;
///
/// let quarter = Share::of(1, 4)?;
/// assert_eq!(quarter, "1/4".parse()?);
/// assert_eq!(quarter.to_string(), "1/4");
/// assert!(Share::of(5, 4).is_err());
/// # Ok::<(), tollgate_core::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Share {
    part: u32,
    whole: u32,
}

impl Share {
    /// All of it: for a service of one process, or where each process has limits of its own anyway.
    pub const WHOLE: Self = Self { part: 1, whole: 1 };

    /// `part` of `whole`.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`] for a part of zero, or for one larger than the whole.
    pub fn of(part: u32, whole: u32) -> Result<Self> {
        if part == 0 || part > whole {
            return Err(invalid(format!(
                "a share is more than nothing and at most all of it, such as 1/4, not {part}/{whole}"
            )));
        }
        Ok(Self { part, whole })
    }

    /// The policy that the stand-in enforces in place of `policy`.
    ///
    /// Everything but the quota is the same.
    #[must_use]
    pub fn policy(self, policy: &Policy) -> Policy {
        self.enforced(policy)
    }

    fn enforced(self, policy: &Policy) -> Policy {
        let quota = self.quota(policy.algorithm().family(), policy.quota());
        let shared = Policy::new(policy.name(), policy.algorithm(), quota);
        let shared = match policy.utc_offset_minutes() {
            Some(minutes) => shared.and_then(|shared| shared.aligned(minutes)),
            None => shared,
        };
        shared.expect("a policy with a smaller quota is as legal as the policy")
    }

    fn quota(self, family: Family, quota: Quota) -> Quota {
        if quota.limit() == 0 || self.part == self.whole {
            return quota;
        }
        if family == Family::Bucket {
            let (limit, period) = self.rate(quota);
            let burst = self.units(quota.capacity());
            return largest_exact(burst, |burst| Quota::new_with_burst(limit, period, burst));
        }
        largest_exact(self.units(quota.limit()), |limit| {
            Quota::new(limit, quota.period())
        })
    }

    /// The share of `units`, at least 1.
    fn units(self, units: u64) -> u64 {
        let share = u128::from(units) * u128::from(self.part) / u128::from(self.whole);
        // No more than `units`, so it fits.
        u64::try_from(share).unwrap_or(units).max(1)
    }

    /// The share of a quota's rate, as units per period.
    fn rate(self, quota: Quota) -> (u64, Duration) {
        let parts = u128::from(quota.limit()) * u128::from(self.part);
        let divisor = gcd(parts, u128::from(self.whole));
        let limit = u64::try_from(parts / divisor).unwrap_or(u64::MAX);
        let periods = u32::try_from(u128::from(self.whole) / divisor).unwrap_or(u32::MAX);
        match quota.period().checked_mul(periods) {
            Some(period) if period <= Quota::MAX_PERIOD && limit <= Quota::MAX_LIMIT => {
                (limit, period)
            }
            _ => (self.units(quota.limit()), quota.period()),
        }
    }
}

/// The quota of as many `units` as can be counted exactly, halving them until they can.
fn largest_exact(units: u64, quota: impl Fn(u64) -> Result<Quota, QuotaError>) -> Quota {
    let halves = std::iter::successors(Some(units), |units| Some(units / 2));
    halves
        .take_while(|units| *units > 0)
        .find_map(|units| quota(units).ok())
        .expect("one unit is counted exactly in any legal period")
}

const fn gcd(a: u128, b: u128) -> u128 {
    let (mut a, mut b) = (a, b);
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.part, self.whole)
    }
}

impl FromStr for Share {
    type Err = Error;

    /// # Errors
    /// [`ErrorKind::InvalidInput`] for anything but two numbers with a slash between them, and as [`Share::of`].
    fn from_str(text: &str) -> Result<Self> {
        let numbers = text.split_once('/').map(|(part, whole)| {
            let number = |digits: &str| digits.trim().parse::<u32>();
            (number(part), number(whole))
        });
        match numbers {
            Some((Ok(part), Ok(whole))) => Self::of(part, whole),
            _ => Err(invalid(format!(
                "a share is two whole numbers with a slash between them, such as 1/4, not {text:?}"
            ))),
        }
    }
}

fn invalid(message: String) -> Error {
    Error::new(ErrorKind::InvalidInput, message)
}
