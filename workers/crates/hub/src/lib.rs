//! A hub: its sessions with sites, its multicast legs, and which site takes what over which of them.
//!
//! [`Leg`] is one multicast leg: it takes products from the feed's log, paces sealed datagrams, answers requests,
//! changes keys, and follows the losses of its sites with its rate.
//!
//! Nothing here has a socket, a file, a thread or a clock: time, bytes, randomness and storage are arguments. The
//! `node` crate drives these machines with TLS streams, groups and the product log.
#![forbid(unsafe_code)]

mod flood;
mod late_share;
mod leg;

pub use flood::{Flood, Sight};
pub use late_share::LateShare;
pub use leg::{
    CurrentKeys, Leg, LegInput, LegInterface, LegOutput, LegSession, LegSessions, LegSettings, LogRange,
    ProofSecrets,
};
