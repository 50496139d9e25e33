//! The policies of the stand-in, each worked out once.

use hashbrown::HashMap;
use parking_lot::Mutex;
use tollgate_core::{Algorithm, Policy, Quota};

use super::share::Share;

/// Everything of a policy that decides what its share is.
type Terms = (Algorithm, Quota, Option<i32>);

#[derive(Debug)]
pub(super) struct Shares {
    share: Share,
    policies: Mutex<HashMap<Terms, Policy, ahash::RandomState>>,
}

impl Shares {
    /// A service has some dozens. Quotas made up for each caller must not add up for ever.
    const MOST: usize = 4096;

    pub(super) fn new(share: Share) -> Self {
        Self {
            share,
            policies: Mutex::default(),
        }
    }

    pub(super) const fn share(&self) -> Share {
        self.share
    }

    /// What the stand-in enforces for `policy`. Its name is that of the first policy of these terms.
    pub(super) fn of(&self, policy: &Policy) -> Policy {
        let terms = (
            policy.algorithm(),
            policy.quota(),
            policy.utc_offset_minutes(),
        );
        let mut policies = self.policies.lock();
        if let Some(shared) = policies.get(&terms) {
            return shared.clone();
        }
        let shared = self.share.policy(policy);
        if policies.len() >= Self::MOST {
            policies.clear();
        }
        policies.insert(terms, shared.clone());
        shared
    }
}
