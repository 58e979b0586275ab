//! The terms that every crate of the data plane shares.
//!
//! This crate does no I/O, holds no state machine and knows no wire format beyond the encoding of the values
//! themselves. [`Machine`] is the contract between a protocol and its driver: the `node` crate with sockets
//! and a clock, the `sim` crate with virtual time.
#![forbid(unsafe_code)]

pub mod bounds;
mod content;
mod ere;
pub mod file_names;
mod heartbeat;
mod hops;
mod ldm;
mod machine;
pub mod moment;
mod names;
mod pattern;
mod pieces;
mod product;
mod properties;
mod ranges;
mod slabs;
mod source_budget;
mod time;

pub use content::{Content, StoredContent};
pub use heartbeat::{HEARTBEAT_PREFIX, is_heartbeat};
pub use hops::Hops;
pub use ldm::{LDM_IDENT_BYTES_MAX, LDM_ORIGIN_BYTES_MAX, LdmIdent, LdmStamp, counted};
pub use machine::Machine;
pub use names::{FeedName, HubName, NameError, Origin, ProductId, SiteName};
pub use pattern::{IdFilter, Pattern, PatternError};
pub use pieces::Pieces;
pub use product::{Class, Digest, Epoch, Lane, LegId, ProductInfo, ProductKey, Sequence, Transport};
pub use properties::{PROPERTIES_BYTES_MAX, Properties};
pub use ranges::RangeSet;
pub use slabs::Slabs;
pub use source_budget::{SourceBudget, network};
pub use time::{Micros, Now, WallMicros};
