//! A receiver's request, and the state of its reception at that time, so that a late request counts for the
//! packets lacking after the repairs it could not know of.
use downburst_model::RangeSet;
use minicbor::{Decode, Encode};

/// A request for lost packets.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub struct Request {
    /// Packet numbers. Of a block of which symbols came, as many as the receiver needs beside them.
    #[n(0)]
    pub packets: RangeSet,
    /// The highest packet that the receiver knows was sent: what left before it has come, or is lost. Absent: not told.
    #[n(1)]
    pub heard: Option<u64>,
    /// Of blocks with packets in this request: the symbols that were taken into account.
    #[n(2)]
    #[cbor(default, skip_if = "Vec::is_empty")]
    pub symbols: Vec<SymbolsHeard>,
    /// The site has a repair channel, and its datagrams get no answer.
    #[n(3)]
    #[cbor(default, skip_if = "is_false")]
    pub unanswered: bool,
    /// In a large group, now and then: what the site lost, whether it asked for it or not.
    #[n(4)]
    pub losses: Option<Losses>,
}

/// What a receiver missed of the packets of a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Losses {
    /// Packets that did not come at first.
    #[n(0)]
    pub missed: u64,
    /// Packets that were sent.
    #[n(1)]
    pub of: u64,
}

/// What a receiver knows of a block's symbols.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct SymbolsHeard {
    /// The block's first packet.
    #[n(0)]
    pub block: u64,
    /// How many symbols it was told of, whether they came or not.
    #[n(1)]
    pub made: u16,
}

impl Request {
    /// How many symbols of the block the receiver knew of.
    pub(crate) fn symbols_of(&self, block: u64) -> u16 {
        self.symbols.iter().find(|heard| heard.block == block).map_or(0, |heard| heard.made)
    }

    /// Cuts a request into pieces, none with more than so many ranges.
    pub(crate) fn pieces(self, ranges: usize) -> Vec<Self> {
        let all: Vec<(u64, u64)> = self.packets.iter().collect();
        if all.len() <= ranges {
            return vec![self];
        }
        let piece = |part: &[(u64, u64)]| Self { packets: part.iter().copied().collect(), ..self.clone() };
        all.chunks(ranges.max(1)).map(piece).collect()
    }

    /// Encoding into memory can't fail.
    pub(crate) fn encode(&self) -> Vec<u8> {
        minicbor::to_vec(self).unwrap_or_default()
    }

    /// `None` if it is malformed.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        minicbor::decode(bytes).ok()
    }
}

impl From<RangeSet> for Request {
    fn from(packets: RangeSet) -> Self {
        Self { packets, ..Self::default() }
    }
}

fn is_false(said: &bool) -> bool {
    !said
}
