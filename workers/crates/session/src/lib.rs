//! The session between a hub and one site.
//!
//! [`HubSession`] is the hub's half: one per connection. [`SiteSession`] is the site's half, and the whole
//! protocol logic of a receiving site: it holds the frontiers, a VCMTP receiver per multicast leg, and the
//! repeated requests. Both are machines without sockets, clock, disk or threads: the `node` crate drives them
//! with a TLS stream, UDP sockets and the product log; the `sim` crate drives the same machines in virtual
//! time.
#![forbid(unsafe_code)]

mod api;
mod bounds;
mod credentials;
mod data;
mod fields;
mod frame;
mod frontier;
mod handling;
mod hub;
mod message;
mod packed;
mod patterns;
mod resend;
mod site;
mod spans;
mod stretch;
mod stretches;
mod train;
mod versions;

pub use api::*;
pub use credentials::Secrets;
pub use data::*;
pub use downburst_fanout::{Classes, StreamId};
pub use downburst_offset::Estimate;
pub use frame::{KINDS, receipts_frame, whole_frames};
pub use frontier::{ActionFailed, Frontier, LinkedSpace};
pub use handling::*;
pub use hub::HubSession;
pub use message::*;
pub use patterns::Filter;
pub use resend::*;
pub use site::SiteSession;
pub use stretch::Stretch;
pub use stretches::{Stretches, stretch_end};
pub use train::{Car, Train};
pub use versions::*;
