//! Messages about circuits: the site's node sets up and removes its end of each circuit at the hub's request.
use std::net::IpAddr;

use downburst_model::{Micros, WallMicros};
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
    /// The address inside the circuit of the hub's end, or of the other site's end if the hub has none.
    #[n(9)]
    pub peer_address: String,
    /// The time, by the hub's clock, at which the site removes its end by itself, whether or not it is
    /// connected to the hub.
    #[n(10)]
    pub until: Option<WallMicros>,
    /// `Some(true)`: the hub has no end of this circuit, so this end asks the other one whether it answers, and
    /// reports each change by [`CircuitHeard`].
    #[n(11)]
    pub watches: Option<bool>,
    /// The site has no end, but joins two hops with different tags: frames go from one side to the other. `way` is
    /// then [`CircuitWay::Declared`] and `address` is empty, so that a site without this field refuses the offer.
    #[n(12)]
    pub transit: Option<Box<CircuitTransit>>,
}

/// Both sides of a site between two hops.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct CircuitTransit {
    /// Towards the near end.
    #[n(0)]
    pub near: TransitSide,
    /// Towards the far end.
    #[n(1)]
    pub far: TransitSide,
}

/// A side of a site between two hops.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct TransitSide {
    /// A tunnel to one other end, or a tag.
    #[n(0)]
    pub way: CircuitWay,
    /// The maximum rate out of this side, in Ethernet-frame bits per second.
    #[n(1)]
    pub rate_bps: u64,
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

/// Hub to site: the whole set of the site's ends. All others are removed: the hub gave them up while it, or the site,
/// was away.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct CircuitSet {
    /// The numbers of their leases.
    #[n(0)]
    pub leases: Vec<u32>,
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

/// Site to hub: the other end of a circuit between two sites answers, or answers no more.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct CircuitHeard {
    /// The number of its lease.
    #[n(0)]
    pub lease: u32,
    /// The fault; absent: it answers.
    #[n(1)]
    pub fault: Option<CircuitFault>,
}

/// Hub to site: measure a circuit between two sites from this end, which watches it. Answered by [`CircuitProbed`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct CircuitProbe {
    /// The number of its lease.
    #[n(0)]
    pub lease: u32,
    /// The number of the measurement, which the answer repeats.
    #[n(1)]
    pub run: u32,
    /// The train; absent: only five packets there and back.
    #[n(2)]
    pub train: Option<CircuitTrain>,
}

/// A train of packets at a steady rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct CircuitTrain {
    /// Ethernet-frame bits per second, on the circuit's port.
    #[n(0)]
    pub rate_bps: u64,
    /// Its length in time.
    #[n(1)]
    pub duration_ms: u32,
    /// From this end to the other one; else from there to here.
    #[n(2)]
    pub out: bool,
    /// The size of one packet on the port.
    #[n(3)]
    pub frame_bytes: u32,
}

/// Site to hub: a measurement.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct CircuitProbed {
    /// The number of its lease.
    #[n(0)]
    pub lease: u32,
    /// The number of the measurement.
    #[n(1)]
    pub run: u32,
    /// Packets there and back; absent: this site has no such end.
    #[n(2)]
    pub reach: Option<CircuitReach>,
    /// The train, if there was one.
    #[n(3)]
    pub rate: Option<CircuitRate>,
}

/// Probe packets there and back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct CircuitReach {
    /// Sent packets.
    #[n(0)]
    pub sent: u32,
    /// Their replies.
    #[n(1)]
    pub received: u32,
    /// Round trips: the least, the median and the greatest; absent without a reply.
    #[n(2)]
    pub round_trip_us: Option<(u64, u64, u64)>,
}

/// The arrivals of a train. Rates are Ethernet-frame bits per second; a bin is 50 ms.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub struct CircuitRate {
    /// Sent packets.
    #[n(0)]
    pub sent: u32,
    /// Packets that arrived.
    #[n(1)]
    pub received: u32,
    /// The rate at which they were sent.
    #[n(2)]
    pub offered_bps: u64,
    /// The rate at which they arrived.
    #[n(3)]
    pub received_bps: u64,
    /// The rate of arrivals in each bin.
    #[n(4)]
    pub bins_bps: Vec<u64>,
    /// The rate of departures in each bin.
    #[n(5)]
    pub sent_bins_bps: Vec<u64>,
    /// Lost packets of each million that were sent in the bin.
    #[n(6)]
    pub lost_ppm_by_bin: Vec<u32>,
    /// Delay above that of the fastest packet: median, 95th percentile, maximum.
    #[n(7)]
    pub delay_rise_us: (u64, u64, u64),
    /// The longest run of lost packets.
    #[n(8)]
    pub longest_loss_run: u32,
    /// Packets back to back before the train: sent, and arrived.
    #[n(9)]
    pub burst: (u32, u32),
    /// The rate of other traffic through the circuit in the train's direction.
    #[n(10)]
    pub others_bps: u64,
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

impl CircuitFault {
    /// The other end does not answer; `silent_for`: since its last packet, if there was one.
    pub fn silent(interface: &str, silent_for: Option<Micros>) -> Self {
        let since = silent_for.map_or_else(String::new, |it| format!(" for {:.1} s", it.0 as f64 / 1e6));
        Self {
            step: "route".to_owned(),
            sentence: format!("nothing came back through {interface}{since}"),
            remedy:
                "check that the ports of both ends are up and that the network between them carries UDP port \
                4789; until then feeds take the routed path"
                    .to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_silence_has_a_length_once_something_was_heard() {
        let said = |silent_for| CircuitFault::silent("dbc17", silent_for).sentence;
        assert_eq!(said(None), "nothing came back through dbc17");
        assert_eq!(said(Some(Micros(1_260_000))), "nothing came back through dbc17 for 1.3 s");
    }

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
