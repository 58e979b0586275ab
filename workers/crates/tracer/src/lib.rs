//! The tracer: samples of TCP connections as the kernel describes them, and what they say.
//!
//! | part | what it does |
//! |---|---|
//! | [`Sample`], [`Variable`] | read the kernel's `struct tcp_info` of any release |
//! | [`Recorder`] | decides which samples are worth a record |
//! | [`Ring`], [`Record`] | lay records out in one file of bounded size, and read them back |
//! | [`verdict`] | names what limited a connection, with the share of the time |
//! | [`stalls`] | finds the spans in which nothing was acknowledged although bytes waited |
//! | [`TracerLine`], [`Gathering`], [`TracerAnswer`] | a question about a site, and its answer |
//!
//! Bytes and times are arguments: there is no socket, file, thread or clock here.
#![forbid(unsafe_code)]

mod gathering;
mod record;
mod recorder;
mod ring;
mod sample;
mod stalls;
mod variable;
mod verdict;

pub use gathering::{ConnectionAnswer, Gathering, Standing, TracerAnswer, TracerLine};
pub use record::{Connection, RECORD_BYTES, Record, Role};
pub use recorder::Recorder;
pub use ring::{HEADER_BYTES, Placed, RING_RECORDS, Ring, Scan, header, is_header};
pub use sample::Sample;
pub use stalls::{Stall, stalls};
pub use variable::Variable;
pub use verdict::{Limit, Share, Verdict, verdict};
