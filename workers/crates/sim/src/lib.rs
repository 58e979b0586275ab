//! Worlds in virtual time: the protocol machines of the data plane on a network that loses, delays, reorders
//! and duplicates packets by seed.
//!
//! [`net`] is the network: [`SimulatedLink`](net::SimulatedLink)s for datagrams and [`Stream`](net::Stream)s for
//! sessions.
//! A world owns machines and network and advances time from deadline to deadline. A run of an hour therefore takes
//! only as long as its events, and the same seed gives the same run to the last bit.
#![forbid(unsafe_code)]

pub mod hub_world;
pub mod multicast_world;
pub mod net;
