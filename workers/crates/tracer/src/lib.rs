//! The tracer: samples of TCP connections as the kernel describes them, and what they say.
//!
//! | part | what it does |
//! |---|---|
//! | [`Sample`], [`Variable`] | read the kernel's `struct tcp_info` of any release |
//! | [`Recorder`] | decides which samples are worth a record |
//! | [`Ring`], [`Record`] | lay records out in one file of bounded size, and read them back |
//! | [`verdict`] | names what limited a connection, with the share of the time |
//! | [`stalls`] | finds the spans in which nothing was acknowledged although bytes waited |
//! | [`Selection`] | chooses connections by their ends |
//! | [`TracerLine`], [`Wanted`], [`Gathering`], [`TracerAnswer`] | a question about a ring, and its answer |
//! | [`Table`] | writes samples as lines of a table, by values or by growth |
//!
//! Bytes and times are arguments: there is no socket, file, thread or clock here.
#![forbid(unsafe_code)]

mod gathering;
mod record;
mod recorder;
mod ring;
mod sample;
mod selection;
mod stalls;
mod table;
mod variable;
mod verdict;
mod words;

pub use gathering::{ConnectionAnswer, Gathering, Standing, TracerAnswer, TracerLine, Wanted};
pub use record::{Connection, RECORD_BYTES, Record, Role};
pub use recorder::Recorder;
pub use ring::{HEADER_BYTES, Placed, Ring, Room, Scan, header, read_header};
pub use sample::Sample;
pub use selection::{Prefix, Selection};
pub use stalls::{Stall, stalls};
pub use table::Table;
pub use variable::Variable;
pub use verdict::{Limit, Share, Verdict, verdict};
