//! The repair channel: requests for lost packets, and repairs for one site alone, as sealed datagrams between
//! that site and its hub.
//!
//! | bytes | content |
//! |---|---|
//! | 0 | mark and version: [`TO_HUB`] or [`TO_SITE`] |
//! | 1..5 | channel id, big-endian |
//! | 5..11 | counter, big-endian; counts from 1 in each direction |
//! | 11..n-16 | kind (1 byte) and body under the channel's key |
//! | n-16..n | tag; the 11 bytes of the header are the additional data |
//!
//! | kind | from | body |
//! |---|---|---|
//! | 1 request | site | the site's stamp (8), [`Request`](crate::Request) in CBOR; without packets: a probe |
//! | 2 heard | hub | the stamp of the request; further bytes are skipped |
//! | 3 repair | hub | packet number (8), the packet in clear |
//!
//! Other kinds are skipped. The nonce is the mark, three zeros, and the counter in eight bytes, so that the
//! two directions share a key but no nonce.
use minicbor::{Decode, Encode};

use crate::Cipher;

mod hub;
mod round_trip;
mod seal;
mod site;
mod window;

pub use hub::{Heard, HubChannel};
pub use seal::channel_of;
pub(crate) use seal::is_from_hub;
pub(crate) use site::{Answer, SiteChannel};

/// The parameters of a site's requests by datagrams. Drawn for one site and one participation in a leg; its
/// counters begin at 1.
#[derive(Clone, PartialEq, Eq, Encode, Decode)]
pub struct RepairChannel {
    /// Identifies the channel in its datagrams; unique at the hub.
    #[n(0)]
    pub id: u32,
    /// The UDP port at the session's address.
    #[n(1)]
    pub port: u16,
    /// Only this site and the hub have it.
    #[cbor(n(2), with = "minicbor::bytes")]
    pub secret: [u8; 32],
    /// The cipher of the datagrams.
    #[n(3)]
    pub cipher: Cipher,
}

impl std::fmt::Debug for RepairChannel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "RepairChannel({}, port {})", self.id, self.port)
    }
}
