//! STAMP, the Simple Two-Way Active Measurement Protocol (RFC 8762), with its extensions (RFC 8972).
//!
//! | part | what it does |
//! |---|---|
//! | [`Format`], [`ErrorEstimate`] | stamps of NTP and PTPv2, and the error that their clock claims |
//! | [`Request`], [`Answer`], [`Key`] | the two packets, open (44 octets) or authenticated (112 octets) |
//! | [`tlv`] | extensions behind a packet: padding, location, and those of others |
//! | [`Reflector`] | answers requests, within bounds, and never with more octets than came |
//! | [`Sender`], [`Report`] | sends requests, and says what their answers show and what they cannot |
//!
//! Bytes and times are arguments: there is no socket, thread or clock here.
#![forbid(unsafe_code)]

mod directions;
mod estimate;
mod exchange;
mod key;
mod octets;
mod packet;
mod reflector;
mod report;
mod sender;
mod time;
pub mod tlv;

pub use directions::{DirectionFigures, Directions};
pub use estimate::ErrorEstimate;
pub use key::{Key, KeyTooShort};
pub use packet::{Answer, Malformed, OPEN_OCTETS, Request, SEALED_OCTETS};
pub use reflector::{Arrival, Counts, Pending, Reflector, ReflectorSettings, Refusal};
pub use report::{Clocks, Offset, Report, Spread};
pub use sender::{NotTaken, Sender, SenderSettings};
pub use time::{Format, WallNanos};
