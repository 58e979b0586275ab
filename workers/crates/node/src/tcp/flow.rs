//! The connections of a probe: their congestion control, and the kernel's record of them.
use std::net::TcpStream;
use std::ops::Range;
use std::os::fd::AsFd;
use std::time::Duration;

use downburst_model::Micros;
use downburst_probe::Control;
use socket2::SockRef;

use super::{Info, LEAST_ROUND_TRIP, NOT_SENT_LIMIT_BYTES, RESENT, SEGMENT};

/// The kernel's record of a probe's connection, by its sender.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FlowFacts {
    pub(crate) retransmits: u64,
    pub(crate) least_round_trip_us: Option<u64>,
    /// Smoothed.
    pub(crate) round_trip_us: u64,
    /// The payload of a segment.
    pub(crate) segment_bytes: u64,
    /// Written, but not sent even once.
    pub(crate) unsent_bytes: u64,
}

/// Prepares a connection of a probe: each record is sent as it is written, and a thread that reads or writes looks
/// about after `patience`.
pub(crate) fn prepare_probe(stream: &TcpStream, patience: Duration) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(patience))?;
    stream.set_write_timeout(Some(patience))?;
    // Bytes beyond those in flight wait in the probe, so that it ends in time.
    let _ = SockRef::from(stream).set_tcp_notsent_lowat(NOT_SENT_LIMIT_BYTES);
    Ok(())
}

/// Has a socket use this congestion control.
///
/// # Errors
/// The kernel does not have it, or does not allow it; the error is the begin of a sentence, before the place.
pub(crate) fn use_control(socket: &impl AsFd, control: Control) -> Result<(), String> {
    let set = SockRef::from(socket).set_tcp_congestion(control.as_str().as_bytes());
    set.map_err(|_| format!("the congestion control {control} is not available"))
}

/// The congestion control of a connection.
pub(crate) fn control_of(stream: &TcpStream) -> Option<Control> {
    Control::parse(&super::congestion_control(SockRef::from(stream)))
}

/// The shortest round trip of a connection, also of one that has only received.
pub(crate) fn round_trip(stream: &TcpStream) -> Micros {
    let facts = flow_facts(stream).unwrap_or_default();
    Micros(facts.least_round_trip_us.unwrap_or(facts.round_trip_us))
}

/// The kernel's record of a connection; `None`: it does not report it.
pub(crate) fn flow_facts(stream: &TcpStream) -> Option<FlowFacts> {
    let info = nix::sys::socket::getsockopt(stream, Info).ok()?;
    let count = |at: Range<usize>| Some(u64::from(u32::from_ne_bytes(*info.get(at)?.first_chunk()?)));
    Some(FlowFacts {
        retransmits: count(RESENT)?,
        least_round_trip_us: count(LEAST_ROUND_TRIP).filter(|us| *us != u64::from(u32::MAX)),
        round_trip_us: count(ROUND_TRIP)?,
        segment_bytes: count(SEGMENT)?,
        unsent_bytes: count(NOT_SENT)?,
    })
}

/// `tcpi_rtt`, in microseconds.
const ROUND_TRIP: Range<usize> = 68..72;
/// `tcpi_notsent_bytes` (Linux 4.6 and later).
const NOT_SENT: Range<usize> = 144..148;
