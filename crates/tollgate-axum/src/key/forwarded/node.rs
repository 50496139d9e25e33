//! One entry: an address and perhaps a port.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::error::ForwardedProblem;
use ForwardedProblem::{NoBrackets, NotAPort, NotAnAddress, Obfuscated, Unknown};

/// An address as in `X-Forwarded-For`: of IPv6 also without brackets, then without a port.
pub(super) fn loose(text: &str) -> Result<IpAddr, ForwardedProblem> {
    match ipv6(text) {
        Some(address) => Ok(address.into()),
        None => bracketed_or_ipv4(text),
    }
}

/// A node as in RFC 7239, section 6.
pub(super) fn strict(text: &str) -> Result<IpAddr, ForwardedProblem> {
    let (name, _) = text.split_once(':').unwrap_or((text, ""));
    if name.eq_ignore_ascii_case("unknown") {
        return Err(Unknown);
    }
    if name.starts_with('_') {
        return Err(Obfuscated);
    }
    if ipv6(text).is_some() {
        return Err(NoBrackets);
    }
    bracketed_or_ipv4(text)
}

fn bracketed_or_ipv4(text: &str) -> Result<IpAddr, ForwardedProblem> {
    if let Some(bracketed) = text.strip_prefix('[') {
        let (address, rest) = bracketed.split_once(']').ok_or(NotAnAddress)?;
        let address = ipv6(address).ok_or(NotAnAddress)?;
        check_port(rest)?;
        return Ok(address.into());
    }
    let end = text.find(':').unwrap_or(text.len());
    let (address, rest) = text.split_at(end);
    let address: Ipv4Addr = address.parse().map_err(|_| NotAnAddress)?;
    check_port(rest)?;
    Ok(address.into())
}

/// An IPv6 address, with or without a zone (RFC 4007, section 11), which means something to the proxy alone.
fn ipv6(text: &str) -> Option<Ipv6Addr> {
    let (address, zone) = match text.split_once('%') {
        Some((address, zone)) => (address, Some(zone)),
        None => (text, None),
    };
    let in_zone = |c: char| c.is_ascii_alphanumeric() || "-._~%".contains(c);
    if zone.is_some_and(|zone| zone.is_empty() || !zone.chars().all(in_zone)) {
        return None;
    }
    address.parse().ok()
}

/// Accepts nothing, or a colon and a port: up to five digits, or a hidden one (RFC 7239, section 6.2).
fn check_port(rest: &str) -> Result<(), ForwardedProblem> {
    if rest.is_empty() {
        return Ok(());
    }
    let port = rest.strip_prefix(':').ok_or(NotAPort)?;
    let is_number = (1..=5).contains(&port.len()) && port.bytes().all(|b| b.is_ascii_digit());
    let is_hidden = port
        .strip_prefix('_')
        .is_some_and(|name| !name.is_empty() && name.chars().all(in_hidden));
    if is_number || is_hidden {
        return Ok(());
    }
    Err(NotAPort)
}

fn in_hidden(c: char) -> bool {
    c.is_ascii_alphanumeric() || "._-".contains(c)
}
