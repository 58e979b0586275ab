//! What a receiver asks for, and what it had heard when it asked, so that a request that comes late counts for what was lacking after
//! the repairs it could not know of.
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
}

impl From<RangeSet> for Request {
    fn from(packets: RangeSet) -> Self {
        Self { packets, ..Self::default() }
    }
}
