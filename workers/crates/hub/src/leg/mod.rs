//! One multicast leg of a hub.
mod adaptation;
mod api;
mod channels;
mod front;
mod intervals;
mod keys;
mod machine;
mod proofs;
mod reading;
mod sent_at;
mod sessions;
mod size;
mod start;
mod trials;

pub use api::{
    CurrentKeys, LegInput, LegInterface, LegOutput, LegSession, LegSessions, LegSettings, LogRange,
};
pub use channels::ChannelTable;
pub use front::{LegFront, LegOffer};
pub use machine::Leg;
pub use proofs::ProofSecrets;
pub use sent_at::LegFirstBytes;
pub use start::{LegDraws, LegStart};
pub use trials::{LegTrial, LegTrials, SiteLoss};
