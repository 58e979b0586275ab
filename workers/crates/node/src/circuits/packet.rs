//! The packets that the ends of a circuit exchange over it. Each datagram is one CBOR array, followed by padding.
use minicbor::{Decode, Encode};

/// A datagram. The secret came over the session: without it, no host on the circuit can make this node send.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub(super) struct Envelope {
    #[n(0)]
    pub(super) lease: u32,
    #[cbor(n(1), with = "minicbor::bytes")]
    pub(super) secret: [u8; 16],
    #[n(2)]
    pub(super) packet: Packet,
}

/// The content of a datagram. A run is one measurement.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub(super) enum Packet {
    /// A request to echo the number.
    #[n(0)]
    Echo(#[n(0)] u64),
    #[n(1)]
    Reply(#[n(0)] u64),
    /// A packet of the burst before a train.
    #[n(2)]
    Burst(#[n(0)] u32),
    #[n(3)]
    Car(#[n(0)] Car),
    /// A request to send a train here.
    #[n(4)]
    Ask {
        #[n(0)]
        run: u32,
        #[n(1)]
        rate_bps: u64,
        #[n(2)]
        duration_ms: u32,
        #[n(3)]
        frame_bytes: u32,
    },
    /// The end of the train, with the number of packets sent in each bin.
    #[n(5)]
    Over {
        #[n(0)]
        run: u32,
        #[n(1)]
        sent_by_bin: Vec<u32>,
        #[n(2)]
        sent_for_us: u64,
    },
    /// A request for the arrivals.
    #[n(6)]
    ReportWanted(#[n(0)] u32),
    #[n(7)]
    Report(#[n(0)] u32, #[n(1)] Arrivals),
}

/// The statistics of a train at the receiving end.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub(crate) struct Arrivals {
    /// Packets of the burst before the train.
    #[n(0)]
    pub(crate) burst: u32,
    #[n(1)]
    pub(crate) packets: u32,
    /// From the first to the last.
    #[n(2)]
    pub(crate) lasted_us: u64,
    /// By the time of arrival since the first.
    #[n(3)]
    pub(crate) by_bin: Vec<u32>,
    /// By the bin in which they were sent.
    #[n(4)]
    pub(crate) by_sent_bin: Vec<u32>,
    /// Delay above that of the fastest packet: median, 95th percentile, maximum.
    #[n(5)]
    pub(crate) delay_rise_us: (u64, u64, u64),
    /// The longest run of lost packets.
    #[n(6)]
    pub(crate) longest_loss: u32,
}

/// A packet of a train.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub(super) struct Car {
    #[n(0)]
    pub(super) run: u32,
    #[n(1)]
    pub(super) index: u32,
    /// The bin in which it was sent, and the time since the train began.
    #[n(2)]
    pub(super) bin: u16,
    #[n(3)]
    pub(super) sent_us: u64,
}

impl Envelope {
    /// The encoded datagram, padded to a size.
    pub(super) fn padded(&self, bytes: usize) -> Vec<u8> {
        let mut datagram = minicbor::to_vec(self).unwrap_or_default();
        if datagram.len() < bytes {
            datagram.resize(bytes, 0);
        }
        datagram
    }

    pub(super) fn read(datagram: &[u8]) -> Option<Self> {
        minicbor::decode(datagram).ok()
    }
}
