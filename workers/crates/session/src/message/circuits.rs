//! Messages about circuits: the site's node sets up and removes its end of each circuit at the hub's request.
use std::net::IpAddr;

use downburst_model::WallMicros;
use minicbor::{Decode, Encode};

use crate::Ticket;

/// Hub to site: set up this end of a circuit, or change it to this state. Answered by [`CircuitState`].
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct CircuitOffer {
    /// The number of its lease.
    #[n(0)]
    pub lease: u32,
    /// The outgoing interface.
    #[n(1)]
    pub port: String,
    /// The encapsulation on that interface.
    #[n(2)]
    pub way: CircuitWay,
    /// The site's address inside the circuit, with the length of its prefix.
    #[n(3)]
    pub address: String,
    /// The site's maximum rate, in Ethernet-frame bits per second; 0: no limit.
    #[n(4)]
    pub rate_bps: u64,
    /// The circuit may also use the port's spare capacity.
    #[n(5)]
    pub soft: bool,
    /// The maximum burst; absent: the site's node decides.
    #[n(6)]
    pub burst_bytes: Option<u32>,
    /// The rate of the port, if the hub's operator configured it.
    #[n(7)]
    pub port_rate_bps: Option<u64>,
    /// The secret that probes of this circuit carry, known only to its ends.
    #[n(8)]
    pub secret: Ticket,
    /// The hub's address inside the circuit.
    #[n(9)]
    pub hub_address: String,
    /// The time, by the hub's clock, at which the site removes its end by itself, whether or not it is
    /// connected to the hub.
    #[n(10)]
    pub until: Option<WallMicros>,
}

/// Reads an address inside a circuit, with the length of its prefix.
pub fn inner_address(text: &str) -> Option<(IpAddr, u8)> {
    let (address, prefix) = text.split_once('/')?;
    let (address, prefix): (IpAddr, u8) = (address.parse().ok()?, prefix.parse().ok()?);
    (prefix <= if address.is_ipv4() { 32 } else { 128 }).then_some((address, prefix))
}

/// The encapsulation of a circuit on a port. Addresses are text.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub enum CircuitWay {
    /// In a VXLAN tunnel.
    #[n(0)]
    Tunnel {
        /// Its network identifier.
        #[n(0)]
        vni: u32,
        /// The site's address on the underlay.
        #[n(1)]
        local: String,
        /// The other ends on the underlay.
        #[n(2)]
        others: Vec<String>,
        /// A multicast group that reaches all of them on the underlay.
        #[n(3)]
        group: Option<String>,
    },
    /// Under a VLAN tag.
    #[n(1)]
    Tag(#[n(0)] u16),
    /// The port is the circuit, which another system set up.
    #[n(2)]
    Declared,
}

/// Hub to site: remove this end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct CircuitEnd {
    /// The number of its lease.
    #[n(0)]
    pub lease: u32,
}

/// Site to hub: the state of an end.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct CircuitState {
    /// The number of its lease.
    #[n(0)]
    pub lease: u32,
    /// The fault; absent: the end is up.
    #[n(1)]
    pub fault: Option<CircuitFault>,
}

/// The reason for which an end is down.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct CircuitFault {
    /// The failed step, as a word.
    #[n(0)]
    pub step: String,
    /// The fault, in one sentence.
    #[n(1)]
    pub sentence: String,
    /// The remedy.
    #[n(2)]
    pub remedy: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_inside_a_circuit_has_a_prefix_of_its_family() {
        let read = |text| inner_address(text).map(|(address, prefix)| (address.to_string(), prefix));
        assert_eq!(read("10.9.0.1/31"), Some(("10.9.0.1".to_owned(), 31)));
        assert_eq!(read("fd00::1/127"), Some(("fd00::1".to_owned(), 127)));
        for bad in ["10.9.0.1", "10.9.0.1/33", "fd00::1/129", "10.9.0/24", "/24", "10.9.0.1/-1"] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }
}
