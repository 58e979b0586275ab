//! The figures of what arrived.
use minicbor::{Decode, Encode};

use crate::{Delays, Excess};

/// The arrivals of a step, or of one second of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub struct Figures {
    /// The packets that were sent; of a second: the numbers that went by.
    #[n(0)]
    pub sent: u64,
    /// Those that arrived, copies not counted.
    #[n(1)]
    pub received: u64,
    /// Those that did not, and that the receiver's own host did not drop.
    #[n(2)]
    pub lost: u64,
    /// Those that arrived after one with a higher number (RFC 4737).
    #[n(3)]
    pub reordered: u64,
    /// Further arrivals of a packet.
    #[n(4)]
    pub duplicated: u64,
    /// The bytes of the Ethernet frames that arrived, copies not counted.
    #[n(5)]
    pub bytes: u64,
    /// From the first arrival to the last.
    #[n(6)]
    pub elapsed_us: u64,
    /// The delays; absent without an arrival.
    #[n(7)]
    pub delay: Option<Delays>,
    /// The interarrival jitter (RFC 3550, section 6.4.1); absent with fewer than two arrivals.
    #[n(8)]
    pub jitter_us: Option<u64>,
    /// The runs of lost packets; 0 of a second.
    #[n(9)]
    pub losses: u64,
    /// The excess after the first losses; empty of a second.
    #[n(10)]
    pub excess: Vec<Excess>,
    /// Those that reached the receiver's host and that its socket had no room for: the path has not lost them.
    #[n(11)]
    #[cbor(default)]
    pub dropped_here: u64,
}

impl Figures {
    /// The rate of the frames that arrived, bits per second.
    pub fn bps(&self, frame_bytes: u64) -> u64 {
        rate_bps(self.received, self.elapsed_us, frame_bytes)
    }

    /// The figures of a step of which the sender says that it sent so many: a receiver can't have got more.
    pub fn of_sent(self, sent: u64) -> Self {
        let received = self.received.min(sent);
        let missing = sent.saturating_sub(received);
        let dropped_here = self.dropped_here.min(missing);
        Self { sent, received, lost: missing.saturating_sub(dropped_here), dropped_here, ..self }
    }
}

/// The rate of frames in bits per second, where the first of them begins the time; 0 with fewer than two.
pub fn rate_bps(packets: u64, elapsed_us: u64, frame_bytes: u64) -> u64 {
    let bytes = u128::from(packets.saturating_sub(1)) * u128::from(frame_bytes);
    let bits = bytes.saturating_mul(8_000_000);
    bits.checked_div(u128::from(elapsed_us)).map_or(0, |rate| u64::try_from(rate).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_was_lost_or_dropped_here() {
        let counts = |received, dropped_here| {
            let figures = Figures { received, dropped_here, ..Figures::default() }.of_sent(10);
            (figures.received, figures.dropped_here, figures.lost)
        };
        assert_eq!(counts(7, 0), (7, 0, 3));
        assert_eq!(counts(7, 2), (7, 2, 1));
        assert_eq!(counts(7, 9), (7, 3, 0), "a socket drops packets of others too");
        assert_eq!(counts(12, u64::MAX), (10, 0, 0));
    }

    #[test]
    fn the_first_frame_begins_the_time() {
        assert_eq!(rate_bps(101, 100_000, 1_000), 8_000_000);
        assert_eq!([rate_bps(0, 5, 9), rate_bps(1, 5, 9), rate_bps(9, 0, 9)], [0, 0, 0]);
        assert_eq!(rate_bps(u64::MAX, 1, u64::MAX), u64::MAX);
    }
}
