//! From right to left through what the proxies wrote.

use std::net::IpAddr;
use std::num::NonZeroU8;

use http::HeaderMap;

use super::element::{forwarded_for, split_last};
use super::error::{ForwardedError, ForwardedProblem};
use super::header::ForwardedHeader;
use super::node;
use super::trust::TrustedProxies;

/// The first address from the right, the peer's included, that is none of `proxies`; the leftmost if all are.
pub(super) fn behind(
    proxies: &TrustedProxies,
    peer: IpAddr,
    header: ForwardedHeader,
    headers: &HeaderMap,
) -> Result<IpAddr, ForwardedError> {
    let mut client = peer;
    if !proxies.contains(client) {
        return Ok(client);
    }
    for (position, entry) in (1..).zip(entries(header, headers)) {
        client = address(header, position, entry)?;
        if !proxies.contains(client) {
            break;
        }
    }
    Ok(client)
}

/// The `hops`-th address from the right.
pub(super) fn hops(
    hops: NonZeroU8,
    header: ForwardedHeader,
    headers: &HeaderMap,
) -> Result<IpAddr, ForwardedError> {
    let position = usize::from(hops.get());
    match entries(header, headers).nth(position - 1) {
        Some(entry) => address(header, position, entry),
        None => Err(ForwardedError::new(
            header,
            position,
            b"",
            ForwardedProblem::TooFewEntries,
        )),
    }
}

/// The entries of all lines, from right to left; none is looked for before it is asked for.
fn entries(header: ForwardedHeader, headers: &HeaderMap) -> impl Iterator<Item = &[u8]> {
    let lines = headers.get_all(header.name()).into_iter().rev();
    lines.flat_map(move |line| {
        let mut left = Some(line.as_bytes());
        std::iter::from_fn(move || {
            let (entry, rest) = match header {
                ForwardedHeader::XForwardedFor => split_at_last_comma(left?),
                ForwardedHeader::Forwarded => split_last(left?),
            };
            left = rest;
            Some(entry.trim_ascii())
        })
    })
}

fn split_at_last_comma(list: &[u8]) -> (&[u8], Option<&[u8]>) {
    match list.iter().rposition(|byte| *byte == b',') {
        Some(comma) => (&list[comma + 1..], Some(&list[..comma])),
        None => (list, None),
    }
}

fn address(
    header: ForwardedHeader,
    position: usize,
    entry: &[u8],
) -> Result<IpAddr, ForwardedError> {
    parse(header, entry).map_err(|problem| ForwardedError::new(header, position, entry, problem))
}

fn parse(header: ForwardedHeader, entry: &[u8]) -> Result<IpAddr, ForwardedProblem> {
    if entry.is_empty() {
        return Err(ForwardedProblem::Empty);
    }
    match (header, std::str::from_utf8(entry)) {
        (ForwardedHeader::XForwardedFor, Ok(text)) => node::loose(text),
        (ForwardedHeader::XForwardedFor, Err(_)) => Err(ForwardedProblem::NotAnAddress),
        (ForwardedHeader::Forwarded, Ok(text)) => node::strict(&forwarded_for(text)?),
        (ForwardedHeader::Forwarded, Err(_)) => Err(ForwardedProblem::NotAnElement),
    }
}
