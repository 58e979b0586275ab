//! Circuits on this host: the code that a hub's node and a site's node share.
//!
//! [`Keeper`] holds the halves of circuits in the kernel. An [`Endpoint`] on one of them exchanges packets with the
//! other ends, to find out whether the circuit carries traffic, and how much. The list of circuits is decided
//! elsewhere.
mod endpoint;
mod gathering;
mod keeper;
mod packet;
mod rate;

use std::net::IpAddr;

pub(crate) use endpoint::{Endpoint, LONGEST_TRAIN};
pub use keeper::describe_host;
pub(crate) use keeper::{Keeper, Trouble};
pub(crate) use rate::{PROBE_FRAME_BYTES, RateOrder, RateProbe};

/// Reads an address with the length of its prefix.
pub(crate) fn parsed(text: &str) -> Option<(IpAddr, u8)> {
    let (address, prefix) = text.split_once('/')?;
    let (address, prefix): (IpAddr, u8) = (address.parse().ok()?, prefix.parse().ok()?);
    (prefix <= if address.is_ipv4() { 32 } else { 128 }).then_some((address, prefix))
}
