//! Two clients, reqwest and curl, each from an address of its own.

use std::net::Ipv4Addr;
use std::process::Stdio;

use http::{HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;
use tokio::process::Command;

use crate::program::Api;

/// What a client was answered.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: String,
}

impl Answer {
    /// The one value of a header.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        let mut values = self.headers.get_all(name).iter();
        let value = values.next()?.to_str().unwrap();
        assert_eq!(values.next(), None, "{name} is there twice");
        Some(value)
    }

    pub(crate) fn number(&self, name: &str) -> Option<u64> {
        Some(self.text(name)?.parse().unwrap())
    }
}

/// A client that knows where to ask.
pub(crate) struct Client {
    kind: Kind,
    version: Version,
    address: Ipv4Addr,
    base: String,
}

#[derive(Clone, Copy)]
enum Kind {
    Reqwest,
    Curl,
}

#[derive(Clone, Copy)]
enum Version {
    Http1,
    Http2,
}

impl Client {
    /// Both clients over both versions. As each has an address of its own, each has its own counters.
    pub(crate) fn everybody() -> [Self; 4] {
        [
            Self::new(Kind::Reqwest, Version::Http1, 2),
            Self::new(Kind::Reqwest, Version::Http2, 3),
            Self::new(Kind::Curl, Version::Http1, 4),
            Self::new(Kind::Curl, Version::Http2, 5),
        ]
    }

    pub(crate) fn reqwest() -> Self {
        Self::new(Kind::Reqwest, Version::Http1, 1)
    }

    fn new(kind: Kind, version: Version, last: u8) -> Self {
        Self {
            kind,
            version,
            address: Ipv4Addr::new(127, 0, 0, last),
            base: String::new(),
        }
    }

    pub(crate) fn of(self, api: &Api) -> Self {
        Self {
            base: api.url(""),
            ..self
        }
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.ask(path, None).await
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Answer {
        self.ask(path, Some(body)).await
    }

    async fn ask(&self, path: &str, body: Option<&Value>) -> Answer {
        let url = format!("{}{path}", self.base);
        match self.kind {
            Kind::Reqwest => self.ask_by_reqwest(&url, body).await,
            Kind::Curl => self.ask_by_curl(&url, body).await,
        }
    }

    async fn ask_by_reqwest(&self, url: &str, body: Option<&Value>) -> Answer {
        let client = reqwest::Client::builder()
            .no_proxy()
            .local_address(Some(self.address.into()));
        let client = match self.version {
            Version::Http1 => client.http1_only(),
            Version::Http2 => client.http2_prior_knowledge(),
        };
        let client = client.build().unwrap();
        let request = match body {
            None => client.get(url),
            Some(body) => client.post(url).json(body),
        };
        let response = request.send().await.unwrap();
        let expected = match self.version {
            Version::Http1 => http::Version::HTTP_11,
            Version::Http2 => http::Version::HTTP_2,
        };
        assert_eq!(response.version(), expected);
        Answer {
            status: response.status().as_u16(),
            headers: response.headers().clone(),
            body: response.text().await.unwrap(),
        }
    }

    /// A denial is sent before the body has been read, which ends the stream (RFC 9113, section 8.1). Old versions of curl
    /// throw such an answer away if it comes before they have sent all of the body; a denial may be asked for again.
    async fn ask_by_curl(&self, url: &str, body: Option<&Value>) -> Answer {
        const STREAM_ERROR: Option<i32> = Some(92);
        let (option, protocol) = match self.version {
            Version::Http1 => ("--http1.1", "HTTP/1.1 "),
            Version::Http2 => ("--http2-prior-knowledge", "HTTP/2 "),
        };
        let mut curl = Command::new("curl");
        curl.args(["--silent", "--show-error", "--include", option])
            .args(["--noproxy", "*", "--max-time", "60"])
            .args(["--interface", &self.address.to_string()]);
        if let Some(body) = body {
            curl.args(["--header", "content-type: application/json"])
                .args(["--data", &body.to_string()]);
        }
        curl.arg(url).stdin(Stdio::null()).kill_on_drop(true);

        let mut output = curl.output().await.expect("curl is installed");
        for _ in 0..20 {
            if output.status.code() != STREAM_ERROR {
                break;
            }
            output = curl.output().await.unwrap();
        }
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{stderr}");
        let printed = String::from_utf8(output.stdout).unwrap();
        Answer::of_curl(&printed, protocol)
    }
}

impl Answer {
    fn of_curl(printed: &str, protocol: &str) -> Self {
        let (head, body) = printed.split_once("\r\n\r\n").unwrap();
        let (status, headers) = head.split_once("\r\n").unwrap();
        let status = status.strip_prefix(protocol);
        let status = status.expect("the version that was asked for");
        Self {
            status: status[..3].parse().unwrap(),
            headers: headers.split("\r\n").map(header).collect(),
            body: body.to_owned(),
        }
    }
}

fn header(line: &str) -> (HeaderName, HeaderValue) {
    let (name, value) = line.split_once(": ").unwrap();
    (name.parse().unwrap(), value.parse().unwrap())
}
