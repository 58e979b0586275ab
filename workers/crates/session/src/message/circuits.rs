//! What is said about circuits: the site's node makes and ends its end of each as the hub tells it.
use downburst_model::WallMicros;
use minicbor::{Decode, Encode};

use crate::Ticket;

/// Hub to site: make this end of a circuit, or change it to be so. Answered by [`CircuitState`].
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct CircuitOffer {
    /// The number of its lease.
    #[n(0)]
    pub lease: u32,
    /// The interface that it leaves by.
    #[n(1)]
    pub port: String,
    /// How it is carried there.
    #[n(2)]
    pub way: CircuitWay,
    /// The site's address inside the circuit, with the length of its prefix.
    #[n(3)]
    pub address: String,
    /// What the site may send, in Ethernet-frame bits per second; 0: nothing holds it back.
    #[n(4)]
    pub rate_bps: u64,
    /// It may have what the port leaves over.
    #[n(5)]
    pub soft: bool,
    /// How much may leave at once; absent: the site's node decides.
    #[n(6)]
    pub burst_bytes: Option<u32>,
    /// The rate of the port, if the hub's operator said.
    #[n(7)]
    pub port_rate_bps: Option<u64>,
    /// What probes of this circuit carry: known to its ends alone.
    #[n(8)]
    pub secret: Ticket,
    /// The hub's address inside the circuit.
    #[n(9)]
    pub hub_address: String,
    /// The site takes it away then by itself, whether or not it hears of the hub; by the hub's clock.
    #[n(10)]
    pub until: Option<WallMicros>,
}

/// How a circuit is carried on a port. Addresses are text.
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
        /// A group that the underlay carries to all of them.
        #[n(3)]
        group: Option<String>,
    },
    /// Under a VLAN tag.
    #[n(1)]
    Tag(#[n(0)] u16),
    /// The port is the circuit: somebody else made it.
    #[n(2)]
    Declared,
}

/// Hub to site: take this end away.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct CircuitEnd {
    /// The number of its lease.
    #[n(0)]
    pub lease: u32,
}

/// Site to hub: how an end stands.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct CircuitState {
    /// The number of its lease.
    #[n(0)]
    pub lease: u32,
    /// Why it does not stand; absent: it does.
    #[n(1)]
    pub fault: Option<CircuitFault>,
}

/// Why an end does not stand.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct CircuitFault {
    /// The step that failed, as a word.
    #[n(0)]
    pub step: String,
    /// What happened.
    #[n(1)]
    pub sentence: String,
    /// What to do.
    #[n(2)]
    pub remedy: String,
}
