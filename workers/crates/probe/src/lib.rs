//! Probes of the path between a hub's node and a site: UDP packets at a steady rate, and the figures of their arrival.
//!
//! | part | what it does |
//! |---|---|
//! | [`Packet`], [`Key`] | lay a datagram out and authenticate it by the key of one probe |
//! | [`Step`], [`Schedule`] | decide which packets are due, and how late the sender is |
//! | [`Receiver`], [`Figures`] | count what arrives: loss, reordering, copies, delay, jitter, the excess after a loss |
//! | [`Sweep`], [`Knee`] | choose the steps of a sweep, and find the highest rate that the path carries |
//!
//! Times and bytes are arguments: there is no socket, thread or clock here.
#![forbid(unsafe_code)]

mod delays;
mod excess;
mod figures;
mod numbers;
mod packet;
mod receiver;
mod schedule;
mod steps;
mod sweep;

pub use delays::Delays;
pub use excess::{Excess, MOST_EXCESSES};
pub use figures::{Figures, rate_bps};
pub use packet::{Key, Packet, PacketKind};
pub use receiver::Receiver;
pub use schedule::{Due, Schedule, Sent};
pub use steps::{
    LARGEST_PACKET_BYTES, LONGEST_SWEEP_STEP, MOST_STEPS, SHORTEST_STEP, SMALLEST_PACKET_BYTES, Step,
    check_packet, check_sweep, frame_bytes,
};
pub use sweep::{Knee, StepResult, Sweep};
