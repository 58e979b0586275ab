//! A hub: its sessions with sites, its multicast legs, and which site takes what over which of them.
//!
//! Nothing here has a socket, a file, a thread or a clock: time, bytes, randomness and storage are arguments. The
//! `node` crate drives these machines with TLS streams, groups and the product log.
#![forbid(unsafe_code)]
