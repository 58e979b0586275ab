//! The text by which an operator names a tunnel where an interface is expected.
use std::net::{IpAddr, SocketAddr};

use crate::message::PORT;

/// True if the text names no interface of the host, but AMT.
pub fn is_tunnel(text: &str) -> bool {
    text == NAME || text.starts_with(PREFIX)
}

/// The addresses for discoveries that the text names: `amt:192.0.2.1,[2001:db8::1]:2268`, or `amt` alone for the
/// anycast addresses; `None` if it names an interface.
///
/// # Errors
///
/// A sentence, if it names too many relays or an address can't be read.
pub fn relays(text: &str) -> Option<Result<Vec<SocketAddr>, String>> {
    if !is_tunnel(text) {
        return None;
    }
    let named = text.strip_prefix(PREFIX).unwrap_or_default();
    let relays: Result<Vec<SocketAddr>, String> =
        named.split(',').filter(|relay| !relay.is_empty()).map(relay).collect();
    Some(relays.and_then(|relays| match relays.len() {
        0 => Ok(crate::ANYCAST.map(|address| SocketAddr::new(address, PORT)).to_vec()),
        1..=MOST_RELAYS => Ok(relays),
        many => Err(format!("{text:?} names {many} relays; name at most {MOST_RELAYS}")),
    }))
}

/// An address with or without a port.
fn relay(text: &str) -> Result<SocketAddr, String> {
    let alone = text.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    let relay = text.parse().or_else(|_| alone.map(|address| SocketAddr::new(address, PORT)));
    let relay = relay
        .map_err(|_| format!("{text:?} is no address of an AMT relay; write 192.0.2.1 or [2001:db8::1]"))?;
    if crate::gateway::is_a_hosts(relay) {
        Ok(relay)
    } else {
        Err(format!("{relay} is no address of a host"))
    }
}

const NAME: &str = "amt";
const PREFIX: &str = "amt:";

/// The most relays of a site.
const MOST_RELAYS: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(named: &str) -> Vec<String> {
        relays(named).unwrap().unwrap().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn relays_have_addresses_with_or_without_a_port() {
        assert_eq!(
            texts("amt:192.0.2.1,[2001:db8::1],2001:db8::2,[::1]:99,192.0.2.2:7"),
            ["192.0.2.1:2268", "[2001:db8::1]:2268", "[2001:db8::2]:2268", "[::1]:99", "192.0.2.2:7",]
        );
        assert_eq!(texts("amt"), ["192.52.193.1:2268", "[2001:3::1]:2268"]);
        assert_eq!(texts("amt:"), texts("amt"));
    }

    #[test]
    fn interfaces_are_no_tunnels_and_wrong_relays_are_refused() {
        for interface in ["", "eth0", "amt0", "192.0.2.1"] {
            assert!(relays(interface).is_none() && !is_tunnel(interface), "{interface}");
        }
        for wrong in ["amt:relay.example", "amt:239.0.0.1", "amt:0.0.0.0", "amt:192.0.2.1:0"] {
            assert!(relays(wrong).unwrap().is_err(), "{wrong}");
        }
        assert!(relays(&format!("amt:{}", ["192.0.2.1"; 9].join(","))).unwrap().is_err());
    }
}
