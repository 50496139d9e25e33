//! The document that goes with a denial (RFC 9457).

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode, header};
use serde::Serialize;

use super::format::Spelling;
use super::{Denial, DenialFormat, DenialReason};
use crate::headers::delay_seconds;

/// A problem document.
#[derive(Serialize)]
struct Problem<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    title: &'static str,
    status: u16,
    detail: String,
    #[serde(rename = "violated-policies", skip_serializing_if = "<[_]>::is_empty")]
    violated: &'a [String],
}

impl Denial {
    /// The whole answer: status, document, `Retry-After` where there is something to wait for, and what caches must know.
    ///
    /// Caches are told to keep none of it (RFC 6585, section 4), and where `Accept` was asked, that it was. The answer
    /// to `HEAD` has the headers alone, with the length that the document would have had.
    #[must_use]
    pub fn to_response(
        &self,
        format: DenialFormat,
        method: &Method,
        request: &HeaderMap,
    ) -> Response<Bytes> {
        let spelling = format.spelling(request);
        let body = Bytes::from(self.spell(spelling));
        let mut response = Response::new(Bytes::new());
        *response.status_mut() = self.status();
        let headers = response.headers_mut();
        let content_type = HeaderValue::from_static(spelling.content_type());
        headers.insert(header::CONTENT_TYPE, content_type);
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if format == DenialFormat::Negotiate {
            headers.insert(header::VARY, HeaderValue::from_static("accept"));
        }
        self.write_retry_after(headers);
        if method == Method::HEAD {
            headers.insert(header::CONTENT_LENGTH, HeaderValue::from(body.len()));
        } else {
            *response.body_mut() = body;
        }
        response
    }

    fn spell(&self, spelling: Spelling) -> Vec<u8> {
        if spelling == Spelling::Text {
            return self.text().into_bytes();
        }
        let problem = Problem {
            kind: self.kind(),
            title: self.title(),
            status: self.status().as_u16(),
            detail: self.detail(),
            violated: &self.violated,
        };
        serde_json::to_vec(&problem).expect("texts and numbers can always be written")
    }

    fn text(&self) -> String {
        let mut text = format!("{}\n{}\n", self.title(), self.detail());
        if !self.violated.is_empty() {
            // Each name in quotes, so that a comma in one does not make it two.
            let names: Vec<_> = self
                .violated
                .iter()
                .map(|name| format!("{name:?}"))
                .collect();
            text.push_str(&format!("Violated policies: {}\n", names.join(", ")));
        }
        text
    }

    /// The problem type: those of the draft's section 5, or none in particular.
    const fn kind(&self) -> &'static str {
        match self.reason {
            DenialReason::QuotaExceeded | DenialReason::NeverFits => {
                "https://iana.org/assignments/http-problem-types#quota-exceeded"
            }
            DenialReason::ReducedCapacity => {
                "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity"
            }
            DenialReason::Internal => "about:blank",
        }
    }

    /// The title registered with the type, which never changes (RFC 9457, section 3.1.3).
    fn title(&self) -> &'static str {
        match self.reason {
            DenialReason::QuotaExceeded | DenialReason::NeverFits => "Quota Exceeded",
            DenialReason::ReducedCapacity => "Temporary Reduced Capacity",
            DenialReason::Internal => StatusCode::INTERNAL_SERVER_ERROR
                .canonical_reason()
                .unwrap_or_default(),
        }
    }

    /// What a person should know, in one or two sentences.
    #[must_use]
    pub fn detail(&self) -> String {
        match (self.reason, self.retry_after.map(delay_seconds)) {
            (DenialReason::QuotaExceeded, Some(1)) => {
                "The quota is used up. Try again in 1 second.".to_owned()
            }
            (DenialReason::QuotaExceeded, Some(seconds)) => {
                format!("The quota is used up. Try again in {seconds} seconds.")
            }
            (DenialReason::QuotaExceeded, None) => "The quota is used up.".to_owned(),
            (DenialReason::NeverFits, _) => {
                "The request asks for more than its quota ever allows. Waiting will not help."
                    .to_owned()
            }
            (DenialReason::ReducedCapacity, _) => {
                "The service cannot take this request at the moment. Try again later.".to_owned()
            }
            (DenialReason::Internal, _) => "The request could not be processed.".to_owned(),
        }
    }
}
