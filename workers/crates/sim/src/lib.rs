//! Worlds in virtual time: the protocol machines of the data plane on a network that loses, delays, reorders
//! and repeats by seed.
//!
//! [`net`] is the network: [`SimulatedLink`](net::SimulatedLink)s for datagrams, [`Stream`](net::Stream)s for sessions.
//! A world owns machines and network and moves time from deadline to deadline, so that a run of an hour takes as long
//! as its events do, and the same seed gives the same run to the last bit.
#![forbid(unsafe_code)]

pub mod hub_world;
pub mod multicast_world;
pub mod net;
