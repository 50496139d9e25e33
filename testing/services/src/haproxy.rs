//! How HAProxy is set up as a proxy.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::http_proxy::{Forwarding, ForwardingHeader};

/// The first version that writes `Forwarded` by itself.
const KNOWS_FORWARDED: (u32, u32) = (2, 8);

pub(crate) fn configuration(port: u16, forwarding: &Forwarding, version: (u32, u32)) -> String {
    let header = match forwarding.header {
        ForwardingHeader::XForwardedFor => "option forwardfor",
        ForwardingHeader::Forwarded if version >= KNOWS_FORWARDED => "option forwarded proto for",
        ForwardingHeader::Forwarded => concat!(
            r#"http-request add-header Forwarded "for=%[src];proto=http" if !{ src -m sub : }"#,
            "\n    ",
            r#"http-request add-header Forwarded "for=\"[%[src]]\";proto=http" if { src -m sub : }"#,
        ),
    };
    let Forwarding { upstream, from, .. } = forwarding;
    format!(
        "
global
    maxconn 64
defaults
    mode http
    timeout connect 10s
    timeout client 60s
    timeout server 60s
frontend clients
    bind 127.0.0.1:{port}
    bind [::1]:{port}
    default_backend service
backend service
    {header}
    server service 127.0.0.1:{upstream} source {from}
"
    )
}

/// The version, from a first line like `HAProxy version 2.6.12-1+deb12u4`.
pub(crate) fn version_of(program: &Path) -> Result<(u32, u32)> {
    let output = Command::new(program).arg("-v").output();
    let output = output.with_context(|| format!("cannot run {}", program.display()))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let version = text.split_whitespace().nth(2).unwrap_or_default();
    let mut numbers = version.split(['.', '-']).map(str::parse);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(major)), Some(Ok(minor))) => Ok((major, minor)),
        _ => bail!("{} does not tell its version: {text}", program.display()),
    }
}
