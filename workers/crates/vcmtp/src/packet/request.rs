//! A receiver's request, and the state of its reception at that time, so that a late request counts only for
//! the packets still missing after the repairs that it could not know of.
use downburst_model::RangeSet;
use minicbor::{Decode, Encode};

/// A request for lost packets.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub struct Request {
    /// Packet numbers. Of a block with received symbols, as many as the receiver needs in addition to them.
    #[n(0)]
    pub packets: RangeSet,
    /// The highest packet known to have been sent: all sent before it have arrived or are lost. Absent: unknown.
    #[n(1)]
    pub heard: Option<u64>,
    /// The symbols that were taken into account, for blocks with packets in this request.
    #[n(2)]
    #[cbor(default, skip_if = "Vec::is_empty")]
    pub symbols: Vec<SymbolsHeard>,
    /// True if the site has a repair channel, and its datagrams get no answer.
    #[n(3)]
    #[cbor(default, skip_if = "is_false")]
    pub unanswered: bool,
    /// In a large group, periodically: all losses of the site, requested or not.
    #[n(4)]
    pub losses: Option<Losses>,
}

/// The losses of a receiver in a period.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Losses {
    /// Packets that did not arrive at first.
    #[n(0)]
    pub missed: u64,
    /// Packets that were sent.
    #[n(1)]
    pub of: u64,
}

/// A receiver's knowledge of a block's symbols.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct SymbolsHeard {
    /// The block's first packet.
    #[n(0)]
    pub block: u64,
    /// The number of symbols made as far as it knows, received or not.
    #[n(1)]
    pub made: u16,
}

impl Request {
    /// The number of symbols of the block known to the receiver.
    pub(crate) fn symbols_of(&self, block: u64) -> u16 {
        self.symbols.iter().find(|heard| heard.block == block).map_or(0, |heard| heard.made)
    }

    /// Splits a request into pieces of at most `ranges` ranges.
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
