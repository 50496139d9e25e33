//! The policies of one limiter, and where their counters lie.

use std::slice;
use std::sync::Arc;

use crate::algorithm::Op;
use crate::batch::{Batch, Check};
use crate::error::{Error, ErrorKind, Result};
use crate::key::{Key, Space};
use crate::policy::Policy;
use crate::quota::Quota;

/// One or more policies that are charged together, under a prefix and a scope.
///
/// Those in [shadow mode](Policy::shadow) are asked after the others, each on its own, and charged if it has room.
///
/// Immutable; a clone shares everything. Build the policies of a tier once and clone them into a limiter per request.
///
/// ```
/// use tollgate_core::{Algorithm, Policies, Policy};
///
/// let policies = Policies::new([
///     Policy::new("burst", Algorithm::TokenBucket, "10/second".parse()?)?,
///     Policy::new("sustained", Algorithm::SlidingWindow, "1000/hour".parse()?)?,
/// ])?;
/// assert_eq!(policies.len(), 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Policies(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    prefix: Arc<str>,
    scope: Arc<str>,
    bound: BoundPolicies,
}

/// The policies by how they are asked, which is settled here so that no hit has to look.
#[derive(Debug)]
pub(crate) enum BoundPolicies {
    /// One that is enforced.
    One(Box<Bound>),
    /// Several, all enforced: they share a call.
    Together(Box<[Bound]>),
    /// One or more, some or all in shadow mode: each of those has a call of its own.
    WithShadows(Box<[Bound]>),
}

impl BoundPolicies {
    fn new(bound: Vec<Bound>) -> Self {
        if bound.iter().any(|bound| bound.policy.is_shadow()) {
            return Self::WithShadows(bound.into());
        }
        match <[Bound; 1]>::try_from(bound) {
            Ok([only]) => Self::One(Box::new(only)),
            Err(several) => Self::Together(several.into()),
        }
    }

    fn as_slice(&self) -> &[Bound] {
        match self {
            Self::One(only) => slice::from_ref(only),
            Self::Together(bound) | Self::WithShadows(bound) => bound,
        }
    }
}

/// A policy and the space of its keys.
#[derive(Clone, Debug)]
pub(crate) struct Bound {
    pub(crate) policy: Policy,
    pub(crate) space: Space,
}

impl Bound {
    /// The question whether `subject` may do `op` under this policy.
    pub(crate) fn check<'a>(&'a self, subject: &'a [u8], op: Op) -> Result<Check<'a>> {
        Ok(Check {
            key: Key::new(&self.space, subject)?,
            policy: &self.policy,
            op,
        })
    }
}

impl Policies {
    /// The prefix where none is set.
    pub const DEFAULT_PREFIX: &str = "tollgate";
    /// The scope where none is set.
    pub const DEFAULT_SCOPE: &str = "";

    /// Policies that are charged together.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`] for none, for more than a batch holds, and for two of one name: they would share a
    /// counter.
    pub fn new<P: Into<Policy>>(policies: impl IntoIterator<Item = P>) -> Result<Self> {
        let policies: Vec<Policy> = policies.into_iter().map(Into::into).collect();
        if policies.is_empty() || policies.len() > Batch::MAX_CHECKS {
            return Err(Error::new(
                ErrorKind::InvalidInput,
                format!(
                    "a limiter has 1 to {} policies, not {}",
                    Batch::MAX_CHECKS,
                    policies.len()
                ),
            ));
        }
        for (index, policy) in policies.iter().enumerate() {
            if policies[..index]
                .iter()
                .any(|earlier| earlier.name() == policy.name())
            {
                return Err(Error::new(
                    ErrorKind::InvalidInput,
                    format!(
                        "two policies are named {:?}; give each a name of its own",
                        policy.name()
                    ),
                ));
            }
        }
        Ok(Self::bind(
            Arc::from(Self::DEFAULT_PREFIX),
            Arc::from(Self::DEFAULT_SCOPE),
            policies,
        ))
    }

    fn bind(prefix: Arc<str>, scope: Arc<str>, policies: impl IntoIterator<Item = Policy>) -> Self {
        let bound = policies
            .into_iter()
            .map(|policy| Bound {
                space: Space::new(&prefix, &scope, &policy),
                policy,
            })
            .collect();
        Self(Arc::new(Inner {
            prefix,
            scope,
            bound: BoundPolicies::new(bound),
        }))
    }

    /// The same policies, counted apart from those of every other scope.
    #[must_use]
    pub fn scope(&self, scope: &str) -> Self {
        Self::bind(
            Arc::clone(&self.0.prefix),
            Arc::from(scope),
            self.iter().cloned(),
        )
    }

    /// The same policies under another prefix: for applications that share a store.
    #[must_use]
    pub fn prefix(&self, prefix: &str) -> Self {
        Self::bind(
            Arc::from(prefix),
            Arc::clone(&self.0.scope),
            self.iter().cloned(),
        )
    }

    /// The prefix in force.
    #[must_use]
    pub fn prefix_name(&self) -> &str {
        &self.0.prefix
    }

    /// The scope in force; [`DEFAULT_SCOPE`](Self::DEFAULT_SCOPE) unless one was set.
    #[must_use]
    pub fn scope_name(&self) -> &str {
        &self.0.scope
    }

    /// The policies, in order.
    #[must_use]
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Policy> + '_ {
        self.bound().iter().map(|bound| &bound.policy)
    }

    /// How many there are.
    #[must_use]
    #[expect(
        clippy::len_without_is_empty,
        reason = "there is always at least one policy"
    )]
    pub fn len(&self) -> usize {
        self.bound().len()
    }

    /// All of them, in order.
    pub(crate) fn bound(&self) -> &[Bound] {
        self.0.bound.as_slice()
    }

    /// All of them, by how they are asked.
    #[inline]
    pub(crate) fn asked(&self) -> &BoundPolicies {
        &self.0.bound
    }

    /// Those that are enforced, in order.
    pub(crate) fn enforced(&self) -> impl Iterator<Item = &Bound> + '_ {
        self.bound()
            .iter()
            .filter(|bound| !bound.policy.is_shadow())
    }

    /// Those in shadow mode, in order.
    pub(crate) fn shadows(&self) -> impl Iterator<Item = &Bound> + '_ {
        self.bound().iter().filter(|bound| bound.policy.is_shadow())
    }
}

impl From<Policy> for Policies {
    fn from(policy: Policy) -> Self {
        Self::bind(
            Arc::from(Self::DEFAULT_PREFIX),
            Arc::from(Self::DEFAULT_SCOPE),
            [policy],
        )
    }
}

impl From<Quota> for Policies {
    /// A token bucket named `default`.
    fn from(quota: Quota) -> Self {
        Self::from(Policy::from(quota))
    }
}
