//! The data plane process: sockets, TLS, threads and files around the machines of the other crates.
//!
//! `downburst-node hub` ingests and sends, driven by JSON lines on stdin; `downburst-node receive` is a whole
//! receiving site. Both drive the machines of the `session` and `vcmtp` crates and keep products in the `log`
//! crate. `downburst-node relay` carries the bytes of sites to a hub and knows nothing of them,
//! `downburst-node amt-relay` carries groups to networks without multicast, and `downburst-node tracer` looks at the
//! connections of any process.
#![forbid(unsafe_code)]
// This crate is the place for clocks, threads and unordered maps.
#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

pub mod amt_relay;
pub mod circuits;
mod counters;
pub mod hub;
#[cfg(test)]
mod layer;
mod lines;
pub mod log_tools;
pub mod patterns;
mod probing;
mod recovery;
pub mod relay;
pub mod scrub;
mod signals;
pub mod site;
pub mod system;
pub mod tcp;
pub mod tls;
pub mod tracer;
mod tunnel;
mod udp;

use downburst_clock as clock;
use downburst_log::disk;
use downburst_model::file_names;
