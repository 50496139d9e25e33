//! The policies that a response advertises, from one layer or from several around one another.

use http::Response;
use smallvec::SmallVec;

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
    limits: SmallVec<[ServiceLimit; 1]>,
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
    pub(crate) fn of(
        policies: &[PolicyStatus],
        headers: &Headers,
        subject: &[u8],
        reach: Reach,
    ) -> Self {
        let silent = !headers.x_rate_limit && !headers.rate_limit;
        if silent {
            return Self::default();
        }
        let partition_key = headers.partition_key.of(subject);
        let limits = policies
            .iter()
            .filter(|status| !status.is_shadow())
            .filter_map(|status| ServiceLimit::of(status, headers, partition_key.clone()))
            .collect();
        Self {
            limits,
            reach,
            ..Self::default()
        }
    }

    /// Writes the headers of this layer and of those inside it.
    ///
    /// What a layer inside has written is replaced by the whole list. What the handler has set stays.
    pub(crate) fn write<B>(mut self, response: &mut Response<B>) {
        if self.limits.is_empty() {
            return;
        }
        if let Some(inner) = response.extensions_mut().remove::<Self>() {
            self.written = inner.written;
            self.limits.extend(inner.limits);
        }
        for (family, ours) in Family::ALL.into_iter().zip(&mut self.written) {
            if !*ours && family.is_set(response.headers()) {
                continue;
            }
            family.write(&self.limits, response.headers_mut());
            *ours = family.is_set(response.headers());
        }
        if self.reach == Reach::FurtherOut {
            response.extensions_mut().insert(self);
        }
    }
}
