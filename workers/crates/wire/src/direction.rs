//! One direction of the wire: a drop-tail buffer before a lossy link of fixed rate and delay.
//!
//! Time and frames are arguments. A frame that arrives at `t` starts to leave at `max(t, finish of the frame
//! before)`; it is dropped when the bytes still waiting plus its own exceed the buffer; it is due at the far end when
//! its last bit has left plus the delay. Frames never overtake each other.

use std::collections::VecDeque;

use crate::frame;
use crate::spec::{Loss, Spec};

/// The fate of a frame that was offered to the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The frame is on its way.
    Carried,
    /// The link lost the frame after it had used its share of the rate.
    Lost,
    /// The buffer before the link was full.
    Overflowed,
}

/// A frame in flight and its time of arrival at the far end.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct InFlight {
    /// Time of arrival in nanoseconds on the caller's clock.
    pub(crate) due_ns: u64,
    /// The Ethernet frame.
    pub(crate) bytes: Vec<u8>,
}

/// Counters of one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub(crate) struct Counts {
    /// Frames that were put on the wire and not lost.
    pub(crate) carried_frames: u64,
    /// Bytes of those frames.
    pub(crate) carried_bytes: u64,
    /// Frames lost by the link.
    pub(crate) lost_frames: u64,
    /// Frames for which the buffer had no room.
    pub(crate) overflowed_frames: u64,
    /// Frames that the far TAP did not accept.
    pub(crate) refused_frames: u64,
}

/// One direction of the wire.
#[derive(Debug)]
pub(crate) struct Direction {
    spec: Spec,
    random: SplitMix,
    finish_ns: u64,
    data_frames: u64,
    in_flight: VecDeque<InFlight>,
    /// Counters since the start.
    pub(crate) counts: Counts,
}

impl Direction {
    /// Makes an idle direction.
    pub(crate) fn new(spec: Spec, seed: u64) -> Self {
        Self {
            spec,
            random: SplitMix(seed),
            finish_ns: 0,
            data_frames: 0,
            in_flight: VecDeque::new(),
            counts: Counts::default(),
        }
    }

    /// Offers a frame that was read at `now_ns`.
    pub(crate) fn offer(&mut self, now_ns: u64, bytes: &[u8]) -> Verdict {
        let start_ns = self.finish_ns.max(now_ns);
        let waiting_bytes = self.spec.bytes_in(start_ns - now_ns);
        if waiting_bytes.saturating_add(bytes.len() as u64) > self.spec.buffer_bytes {
            self.counts.overflowed_frames += 1;
            return Verdict::Overflowed;
        }
        self.finish_ns = start_ns.saturating_add(self.spec.serialisation_ns(bytes.len()));
        if self.loses(bytes) {
            self.counts.lost_frames += 1;
            return Verdict::Lost;
        }
        self.counts.carried_frames += 1;
        self.counts.carried_bytes += bytes.len() as u64;
        let due_ns = self.finish_ns.saturating_add(self.spec.delay_ns());
        self.in_flight.push_back(InFlight { due_ns, bytes: bytes.to_vec() });
        Verdict::Carried
    }

    /// Takes the next frame that is due.
    pub(crate) fn take_due(&mut self, now_ns: u64) -> Option<InFlight> {
        if self.next_due_ns()? > now_ns {
            return None;
        }
        self.in_flight.pop_front()
    }

    /// Returns the due time of the next frame.
    pub(crate) fn next_due_ns(&self) -> Option<u64> {
        self.in_flight.front().map(|frame| frame.due_ns)
    }

    /// Counts a delivered frame that the far end refused.
    pub(crate) fn refused(&mut self) {
        self.counts.refused_frames += 1;
    }

    fn loses(&mut self, bytes: &[u8]) -> bool {
        if !frame::carries_data(bytes) {
            return false;
        }
        self.data_frames += 1;
        match self.spec.loss {
            Loss::None => false,
            Loss::Bernoulli(share) => self.random.unit() < share,
            Loss::Every(nth) => self.data_frames.is_multiple_of(nth),
        }
    }
}

/// A small seeded generator (splitmix64): runs with the same seed and the same frames lose the same frames.
#[derive(Debug)]
struct SplitMix(u64);

impl SplitMix {
    fn unit(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        (mixed >> 11) as f64 / (1_u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::frame::tests::udp_frame;

    fn spec(text: &str) -> Spec {
        text.parse().expect("a valid spec")
    }

    #[test]
    fn a_frame_takes_its_serialisation_time_and_the_delay() {
        let mut wire = Direction::new(spec("rate_bps=8000000,delay_us=5000"), 1);
        wire.offer(1_000, &udp_frame(1000));
        let bits = udp_frame(1000).len() as u64 * 8;
        assert_eq!(wire.next_due_ns(), Some(1_000 + bits * 125 + 5_000_000));
    }

    #[test]
    fn frames_behind_each_other_leave_at_the_rate() {
        let mut wire = Direction::new(spec("rate_bps=10000000"), 1);
        for _ in 0..100 {
            wire.offer(0, &udp_frame(1208));
        }
        let mut last_ns = 0;
        let mut bits = 0;
        while let Some(frame) = wire.take_due(u64::MAX) {
            assert!(frame.due_ns > last_ns);
            last_ns = frame.due_ns;
            bits += frame.bytes.len() as u64 * 8;
        }
        assert_eq!(bits * 1_000_000_000 / last_ns, 10_000_000);
    }

    #[test]
    fn a_full_buffer_drops_the_tail() {
        let mut wire = Direction::new(spec("rate_bps=1000000,buffer_bytes=3000"), 1);
        let frame = udp_frame(958);
        assert_eq!(frame.len(), 1000);
        let verdicts: Vec<_> = (0..4).map(|_| wire.offer(0, &frame)).collect();
        assert_eq!(verdicts[..3], [Verdict::Carried; 3]);
        assert_eq!(verdicts[3], Verdict::Overflowed);
        assert_eq!(wire.offer(8_000_000, &frame), Verdict::Carried, "one frame has left by then");
    }

    #[test]
    fn every_kth_data_frame_is_lost_and_others_are_spared() {
        let mut wire = Direction::new(spec("every=3"), 1);
        let arp = [0xff; 12].iter().copied().chain([0x08, 0x06]).chain([0; 46]).collect::<Vec<u8>>();
        let mut lost = Vec::new();
        for index in 1..=9 {
            assert_eq!(wire.offer(0, &arp), Verdict::Carried);
            if wire.offer(0, &udp_frame(100)) == Verdict::Lost {
                lost.push(index);
            }
        }
        assert_eq!(lost, [3, 6, 9]);
    }

    #[test]
    fn random_loss_has_the_share_asked_for() {
        let mut wire = Direction::new(spec("loss=0.05"), 20_260_101);
        for _ in 0..20_000 {
            wire.offer(0, &udp_frame(10));
        }
        // Five standard deviations of a binomial with n = 20,000 and p = 0.05.
        assert!(wire.counts.lost_frames.abs_diff(1_000) < 155, "{}", wire.counts.lost_frames);
    }

    proptest! {
        #[test]
        fn frames_keep_their_order_and_none_is_invented(
            offers in prop::collection::vec((0_u64..2_000_000, 1_usize..1_400), 1..200),
            rate_bps in 100_000_u64..1_000_000_000,
            seed in any::<u64>(),
        ) {
            let text = format!("rate_bps={rate_bps},delay_us=1000,loss=0.2,buffer_bytes=20000");
            let mut wire = Direction::new(spec(&text), seed);
            let mut now_ns = 0;
            let mut carried = Vec::new();
            for (gap_ns, payload) in offers {
                now_ns += gap_ns;
                let frame = udp_frame(payload);
                if wire.offer(now_ns, &frame) == Verdict::Carried {
                    carried.push(frame);
                }
            }
            let mut last_ns = 0;
            let mut delivered = Vec::new();
            while let Some(frame) = wire.take_due(u64::MAX) {
                prop_assert!(frame.due_ns >= last_ns);
                last_ns = frame.due_ns;
                delivered.push(frame.bytes);
            }
            prop_assert_eq!(delivered, carried);
        }
    }
}
