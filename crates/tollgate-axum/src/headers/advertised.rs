//! The policies that a response advertises, from one layer or from several around one another.

use http::Response;
use smallvec::SmallVec;
use tollgate_core::Policy;

use super::Headers;
use super::fields::Family;
use super::service_limit::ServiceLimit;
use crate::status::PolicyStatus;

/// What the layers around a handler have to say to its client, outermost first.
///
/// It stays in the response's extensions: its presence there means that the families it remembers were written by a
/// layer, so that a layer further out may write them anew. A header that is there without it is the handler's.
#[derive(Clone, Debug, Default)]
pub(crate) struct Advertised {
    pub(super) limits: SmallVec<[ServiceLimit; 1]>,
    /// The policies in shadow mode that would have denied, where clients may hear of them.
    pub(super) shadows: Vec<Policy>,
    written: [bool; Family::ALL.len()],
    reach: Reach,
}

/// Who has to know what was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Reach {
    /// The client alone: no layer is further out.
    #[default]
    Client,
    /// A layer further out, which will write anew.
    FurtherOut,
}

impl Reach {
    /// Of a layer that `is_inside` another one.
    pub(crate) const fn of(is_inside: bool) -> Self {
        if is_inside {
            Self::FurtherOut
        } else {
            Self::Client
        }
    }
}

impl Advertised {
    /// What one layer has to say of its policies about `subject`. Nothing if the failure mode decided: no number is known.
    ///
    /// Policies in shadow mode are not listed, since they limit nobody.
    pub(crate) fn of(
        policies: &[PolicyStatus],
        headers: &Headers,
        subject: &[u8],
        reach: Reach,
    ) -> Self {
        let mut advertised = Self {
            reach,
            ..Self::default()
        };
        if headers.x_rate_limit || headers.rate_limit {
            let partition_key = headers.partition_key.of(subject);
            let enforced = policies.iter().filter(|status| !status.is_shadow());
            advertised.limits = enforced
                .filter_map(|status| ServiceLimit::of(status, headers, partition_key.clone()))
                .collect();
        }
        if headers.shadow {
            let shadows = policies.iter().filter(|status| status.is_shadow());
            let violated = shadows.filter(|status| !status.is_allowed());
            advertised.shadows = violated.map(|status| status.policy().clone()).collect();
        }
        advertised
    }

    /// Writes the headers of this layer and of those inside it.
    ///
    /// What a layer inside has written is replaced by the whole list. What the handler has set stays.
    pub(crate) fn write<B>(mut self, response: &mut Response<B>) {
        if self.limits.is_empty() && self.shadows.is_empty() {
            return;
        }
        if let Some(inner) = response.extensions_mut().remove::<Self>() {
            self.written = inner.written;
            self.limits.extend(inner.limits);
            self.shadows.extend(inner.shadows);
        }
        for (index, family) in Family::ALL.into_iter().enumerate() {
            if !self.written[index] && family.is_set(response.headers()) {
                continue;
            }
            family.write(&self, response.headers_mut());
            self.written[index] = family.is_set(response.headers());
        }
        if self.reach == Reach::FurtherOut {
            response.extensions_mut().insert(self);
        }
    }
}
