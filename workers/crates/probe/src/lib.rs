//! Probes of the path between a hub's node and a site: packets at a steady rate by
//! UDP or TCP, greedy TCP flows beside each other, and the figures of their arrival.
//!
//! | part | what it does |
//! |---|---|
//! | [`Packet`], [`Key`] | lay a datagram out and authenticate it by the key of one probe |
//! | [`Step`], [`Schedule`] | decide which packets are due, and how late the sender is |
//! | [`Receiver`], [`Figures`] | count what arrives: loss, reordering, copies, delay, jitter, the excess after a loss |
//! | [`Sweep`], [`Knee`] | choose the steps of a sweep, and find the highest rate that the path carries |
//! | [`Opening`], [`Records`] | open a connection of a probe over TCP, and cut its stream into records |
//! | [`TokenBucket`], [`Trial`] | limit greedy flows together, and compare them |
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
mod tcp;

pub use delays::Delays;
pub use excess::{Excess, MOST_EXCESSES};
pub use figures::{Figures, rate_bps};
pub use packet::{Key, Packet, PacketKind};
pub use receiver::Receiver;
pub use schedule::{Due, LONGEST_WAIT, Schedule, Sent, SentByTcp};
pub use steps::{
    LARGEST_PACKET_BYTES, LONGEST_SWEEP_STEP, MOST_STEPS, SHORTEST_STEP, SMALLEST_PACKET_BYTES, Step,
    check_packet, check_sweep, frame_bytes,
};
pub use sweep::{Knee, StepResult, Sweep};
pub use tcp::{
    BrokenRecords, Control, Flow, FlowFigures, LARGEST_RECORD_BYTES, LARGEST_TAKE_BYTES, LONGEST_TRIAL,
    MOST_FLOWS, MOST_REVERSE_FLOWS, MOST_TRIALS, OPENING_BYTES, Opening, Purpose, Records, SHORTEST_TRIAL,
    TokenBucket, Trial, check_record, fairness, payload_bps, predicted_recovery_us, tcp_frame_bytes,
};
