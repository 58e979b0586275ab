//! Unicast fan-out: the order of the bytes on one site's streams.
//!
//! One [`Outbox`] per site. Products wait by class and lane. Large ones are cut into slices so that a more
//! urgent product passes them. The queue is bounded, and the driver reads from the log only when there is
//! room. A site has one stream or several: each carries some classes of the feeds that take its path, and
//! takes whole products from the queue it shares with the others. The crate knows no frames and no sockets:
//! `session` defines the form of a slice on the wire.
#![forbid(unsafe_code)]

mod carried;
mod class_queue;
mod fair_share;
mod outbox;
mod stream;

pub use carried::{Classes, May, PathId, StreamId};
pub use outbox::{Limits, Next, Outbox, PARCEL_OVERHEAD_BYTES, Parcel, SLICE_BYTES, Slice};
