//! AMT, Automatic Multicast Tunneling (RFC 7450): multicast for hosts whose network carries none.
//!
//! | part | what it does |
//! |---|---|
//! | [`Message`] | the seven messages between gateway and relay |
//! | [`ip`] | IPv4, IPv6 and UDP: packets read within bounds and written with checksums |
//! | [`membership`] | general queries and reports of IGMPv3 (RFC 3376) and MLDv2 (RFC 3810), as IP packets |
//! | [`Gateway`] | has one channel sent to this host: discovery, request, update, renewal, another relay |
//! | [`Relay`] | answers gateways within limits, and says which channels to join and who receives a packet |
//!
//! A relay answers a request without a state of its own: the code in its query comes back only from the address that
//! asked. Bytes and times are arguments: there is no socket, thread or clock here.
#![forbid(unsafe_code)]

mod code;
mod gateway;
pub mod interface;
pub mod ip;
pub mod membership;
mod message;
mod relay;

pub use code::{Code, Codes, Nonces};
pub use gateway::{Gateway, GatewaySettings, Heard, Outgoing, Standing};
pub use ip::Malformed;
pub use membership::{Channel, Family};
pub use message::{Message, PORT, data_header};
pub use relay::{Change, LONGEST_QUERY, LOOK_INTERVAL, Network, Refusal, Relay, RelayCounts, RelaySettings};

/// The anycast addresses at which public relays answer discoveries (RFC 7450, section 7.1).
pub const ANYCAST: [std::net::IpAddr; 2] = [
    std::net::IpAddr::V4(std::net::Ipv4Addr::new(192, 52, 193, 1)),
    std::net::IpAddr::V6(std::net::Ipv6Addr::new(0x2001, 0x3, 0, 0, 0, 0, 0, 1)),
];
