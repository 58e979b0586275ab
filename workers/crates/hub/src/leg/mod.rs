//! One multicast leg of a hub.
mod adaptation;
mod api;
mod keys;
mod machine;
mod proofs;
mod reading;
mod size;

pub use api::{
    CurrentKeys, LegInput, LegInterface, LegOutput, LegSession, LegSessions, LegSettings, LogRange,
};
pub use machine::Leg;
pub use proofs::ProofSecrets;
