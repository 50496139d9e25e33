//! The policies that a response advertises, from one layer or from several around one another.

use http::Response;
use tollgate_core::Decision;

use super::Headers;
use super::fields::Family;
use super::service_limit::ServiceLimit;

/// What the layers around a handler have to say to its client, outermost first.
///
/// It stays in the response's extensions: its presence there means that the families it remembers were written by a
/// layer, so that a layer further out may write them anew. A header that is there without it is the handler's.
#[derive(Clone, Debug, Default)]
pub(crate) struct Advertised {
    limits: Vec<ServiceLimit>,
    written: [bool; Family::ALL.len()],
}

impl Advertised {
    /// What one layer has to say of `decision` about `subject`. Nothing if the failure mode decided: no number is known.
    pub(crate) fn of(decision: &Decision<'_>, headers: &Headers, subject: &[u8]) -> Self {
        let silent = !headers.x_rate_limit && !headers.rate_limit;
        if silent {
            return Self::default();
        }
        let partition_key = headers.partition_key.of(subject);
        let limits = decision
            .each()
            .filter_map(|decision| ServiceLimit::of(&decision, headers, partition_key.clone()))
            .collect();
        Self {
            limits,
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
        response.extensions_mut().insert(self);
    }
}
