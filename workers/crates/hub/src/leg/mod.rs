//! One multicast leg of a hub.
mod adaptation;
mod api;
mod keys;
mod machine;
mod proofs;
mod reading;
mod size;

pub use api::{LegInput, LegOutput, LegSession, LegSessions, LegSettings, LogRange};
pub use keys::CurrentKeys;
pub use machine::Leg;
pub use proofs::ProofSecrets;
pub use size::LegInterface;
