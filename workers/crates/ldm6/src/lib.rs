//! The LDM-6 protocol, both roles, without sockets.
//!
//! [`Downstream`] requests products (FEEDME) or their descriptions (NOTIFYME) from an upstream LDM and goes
//! on across connections. [`Upstream`] serves one connection of a downstream LDM, or accepts pushed products
//! (HIYA). [`Pusher`] pushes, and [`Probe`] checks whether a server answers. All are machines without
//! sockets, clock, disk or threads. Products pass in pieces, so none is ever held as a whole.
//! `docs/protocol-ldm6.md` describes the implemented part, with the limits.
#![forbid(unsafe_code)]

mod access;
mod answer;
mod auto_shift;
mod class;
mod downstream;
mod ending;
mod feed_type;
mod listener;
mod probe;
mod product;
mod product_receiver;
mod product_sender;
mod pusher;
mod step;
mod upstream;
mod wire;

pub use access::{Accept, Access, Allow};
pub use auto_shift::{AutoShift, Mode};
pub use class::{ClassError, ProductClass, ProductSpec};
pub use downstream::{
    Downstream, DownstreamConfig, DownstreamEvent, DownstreamInput, DownstreamOutput, Interest, Refusal,
};
pub use ending::Ending;
pub use feed_type::{FeedType, FeedTypeError};
pub use probe::{Probe, ProbeInput, ProbeOutput};
pub use product::{Ident, LdmOrigin, PatternText, ProductInfo, Signature, origin_through};
pub use pusher::{Pusher, PusherConfig, PusherInput, PusherOutput};
pub use step::{Dropped, Taken, Want};
pub use upstream::{Served, Upstream, UpstreamConfig, UpstreamEvent, UpstreamInput, UpstreamOutput};
pub use wire::text::{Text, TextError};
pub use wire::time::Timestamp;
pub use wire::versions::Version;
