//! Probes over TCP: records at a constant rate, whose delay shows the cost of a loss, and trials of greedy flows beside
//! each other.
mod bucket;
mod control;
mod fairness;
mod held;
mod opening;
mod records;
mod trial;

pub use bucket::{LARGEST_TAKE_BYTES, TokenBucket, payload_bps};
pub use control::Control;
pub use fairness::fairness;
pub(crate) use held::Held;
pub use held::predicted_recovery_us;
pub use opening::{OPENING_BYTES, Opening, Purpose};
pub use records::{BrokenRecords, Records};
pub use trial::{
    Flow, FlowFigures, LONGEST_TRIAL, MOST_FLOWS, MOST_REVERSE_FLOWS, MOST_TRIALS, SHORTEST_TRIAL, Trial,
};

/// The bytes of an Ethernet frame around a TCP payload: header 14, IPv4 20 or IPv6 40, TCP with its time stamps 32,
/// trailer 4.
pub fn tcp_frame_bytes(payload_bytes: u64, is_ipv6: bool) -> u64 {
    payload_bytes.saturating_add(if is_ipv6 { 90 } else { 70 })
}

/// Checks the size of a probe's records; the error is one sentence.
///
/// # Errors
/// A record does not fit into one segment, or has no room for its header.
pub fn check_record(record_bytes: u64) -> Result<(), String> {
    if (crate::SMALLEST_PACKET_BYTES..=LARGEST_RECORD_BYTES).contains(&record_bytes) {
        return Ok(());
    }
    Err(format!(
        "`packet_bytes` is {record_bytes}; a record of a probe over TCP has {} to {LARGEST_RECORD_BYTES} bytes",
        crate::SMALLEST_PACKET_BYTES
    ))
}

/// The payload of one segment by IPv4 in an Ethernet frame of 1,500 bytes.
pub const LARGEST_RECORD_BYTES: u64 = 1_448;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_one_segment_and_its_frame_has_the_headers_of_tcp() {
        assert_eq!((tcp_frame_bytes(1_448, false), tcp_frame_bytes(1_428, true)), (1_518, 1_518));
        assert!([64, 1_448].map(check_record).iter().all(Result::is_ok));
        assert!([63, 1_449, u64::MAX].map(check_record).iter().all(Result::is_err));
    }
}
