//! A short train at a given rate, and the measurement of the circuit that results.
use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use downburst_hub::circuits::PROBE_FRAME_BYTES;
use downburst_session::CircuitRate;
use serde::Serialize;

use super::gathering::BIN_US;
use super::packet::{Arrivals, Car, Envelope, Packet};

/// A requested measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RateOrder {
    /// Ethernet-frame bits per second, on the circuit's port.
    pub(crate) rate_bps: u64,
    pub(crate) duration: Duration,
    /// From this end to the other.
    pub(crate) out: bool,
    /// The size of one packet on the port.
    pub(crate) frame_bytes: u32,
}

impl RateOrder {
    /// The queue allowed in the kernel below the sender, in bytes of its buffer: a millisecond of the rate,
    /// at least two packets. The shaper then holds the sender back, so that its own queue is not mistaken for a
    /// queue on the path.
    pub(super) fn buffer_bytes(&self) -> usize {
        let packets = self.rate_bps / 8_000 / u64::from(self.frame_bytes.max(1));
        usize::try_from(packets).unwrap_or(usize::MAX).clamp(2, MOST_IN_KERNEL) * PACKET_IN_KERNEL_BYTES
    }
}

/// The packets sent of a train.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Sent {
    pub(super) by_bin: Vec<u32>,
    pub(super) lasted_us: u64,
}

/// The result of a train.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct RateProbe {
    pub(crate) sent: u32,
    pub(crate) received: u32,
    pub(crate) packet_bytes: u32,
    pub(crate) offered_bps: u64,
    pub(crate) received_bps: u64,
    pub(crate) bins_bps: Vec<u64>,
    pub(crate) sent_bins_bps: Vec<u64>,
    pub(crate) lost_share_by_bin: Vec<f64>,
    pub(crate) delay_rise_us: DelayRise,
    pub(crate) longest_loss_run: u32,
    pub(crate) burst: Burst,
}

/// Delay of the packets above that of the fastest one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct DelayRise {
    median: u64,
    p95: u64,
    max: u64,
}

/// Packets back to back before the train.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Burst {
    packets: u32,
    received: u32,
}

impl RateProbe {
    /// The result of a train on which the other end did not report.
    pub(crate) fn unanswered(order: RateOrder) -> Self {
        Self::of(order, &Sent::default(), &Arrivals::default())
    }

    /// The other traffic through the circuit during the train, from the counter of its interface. The
    /// interface counts less of each frame than the port does, so this is a little too small.
    pub(crate) fn others_bps(&self, carried_bytes: u64, took: Duration, out: bool) -> u64 {
        let own = if out { self.sent + self.burst.packets } else { self.received + self.burst.received };
        let others = carried_bytes.saturating_sub(u64::from(own) * INSIDE_BYTES);
        u64::try_from(u128::from(others) * 8_000_000 / took.as_micros().max(1)).unwrap_or(u64::MAX)
    }

    /// The result of a train that another node sent and counted.
    pub(super) fn told(rate: CircuitRate, packet_bytes: u32) -> Self {
        let (median, p95, max) = rate.delay_rise_us;
        Self {
            sent: rate.sent,
            received: rate.received,
            packet_bytes,
            offered_bps: rate.offered_bps,
            received_bps: rate.received_bps,
            bins_bps: rate.bins_bps,
            sent_bins_bps: rate.sent_bins_bps,
            lost_share_by_bin: rate.lost_ppm_by_bin.iter().map(|lost| f64::from(*lost) / 1e6).collect(),
            delay_rise_us: DelayRise { median, p95, max },
            longest_loss_run: rate.longest_loss_run,
            burst: Burst { packets: rate.burst.0, received: rate.burst.1 },
        }
    }

    /// The result for another node; `others_bps`: the rate of other traffic beside the train.
    pub(super) fn said(self, others_bps: u64) -> CircuitRate {
        CircuitRate {
            sent: self.sent,
            // A copy that the network made is no further packet of the train.
            received: self.received.min(self.sent),
            offered_bps: self.offered_bps,
            received_bps: self.received_bps,
            bins_bps: self.bins_bps,
            sent_bins_bps: self.sent_bins_bps,
            lost_ppm_by_bin: self.lost_share_by_bin.iter().map(|lost| (lost * 1e6) as u32).collect(),
            delay_rise_us: (self.delay_rise_us.median, self.delay_rise_us.p95, self.delay_rise_us.max),
            longest_loss_run: self.longest_loss_run,
            burst: (self.burst.packets, self.burst.received.min(self.burst.packets)),
            others_bps,
        }
    }

    pub(super) fn of(order: RateOrder, sent: &Sent, arrived: &Arrivals) -> Self {
        let frame_bits = u64::from(order.frame_bytes) * 8;
        let whole_bins = |bins: &[u32], lasted_us: u64| -> Vec<u64> {
            let whole = usize::try_from(lasted_us / BIN_US).unwrap_or(usize::MAX);
            bins.iter()
                .take(whole)
                .map(|packets| u64::from(*packets) * frame_bits * 1_000_000 / BIN_US)
                .collect()
        };
        let over = |packets: u32, lasted_us: u64| {
            // The first packet starts the interval, so it does not count.
            (u64::from(packets.saturating_sub(1)) * frame_bits * 1_000_000)
                .checked_div(lasted_us)
                .unwrap_or(0)
        };
        let sent_packets: u32 = sent.by_bin.iter().sum();
        let lost = |(bin, packets): (usize, &u32)| {
            let came = arrived.by_sent_bin.get(bin).copied().unwrap_or(0);
            if *packets == 0 { 0.0 } else { f64::from(packets.saturating_sub(came)) / f64::from(*packets) }
        };
        let (median, p95, max) = arrived.delay_rise_us;
        Self {
            sent: sent_packets,
            received: arrived.packets,
            packet_bytes: order.frame_bytes,
            offered_bps: over(sent_packets, sent.lasted_us),
            received_bps: over(arrived.packets, arrived.lasted_us),
            bins_bps: whole_bins(&arrived.by_bin, arrived.lasted_us),
            sent_bins_bps: whole_bins(&sent.by_bin, sent.lasted_us),
            lost_share_by_bin: sent.by_bin.iter().enumerate().map(lost).collect(),
            delay_rise_us: DelayRise { median, p95, max },
            longest_loss_run: arrived.longest_loss,
            burst: Burst { packets: BURST_PACKETS, received: arrived.burst },
        }
    }
}

/// Sends a burst, waits until it is through, then sends a train; runs on a thread that may block. A full shaper
/// holds the sender's socket back, so the load never exceeds the shaper's rate for long.
pub(super) fn send_train(
    socket: &UdpSocket,
    to: SocketAddr,
    envelope: impl Fn(Packet) -> Envelope,
    run: u32,
    order: RateOrder,
) -> std::io::Result<Sent> {
    for _ in 0..BURST_PACKETS {
        send(socket, to, &envelope(Packet::Burst(run)).padded(PAYLOAD_BYTES))?;
    }
    let burst_bits = u64::from(BURST_PACKETS) * u64::from(order.frame_bytes) * 8;
    std::thread::sleep(BURST_REST + Duration::from_micros(burst_bits * 1_000_000 / order.rate_bps.max(1)));
    let gap_ns = u64::from(order.frame_bytes) * 8_000_000_000 / order.rate_bps.max(1);
    let (begin, mut sent, mut index) = (Instant::now(), Sent::default(), 0_u32);
    loop {
        let due = Duration::from_nanos(gap_ns.saturating_mul(u64::from(index)));
        if due >= order.duration || begin.elapsed() >= order.duration * 2 {
            return Ok(sent);
        }
        if let Some(early) = due.checked_sub(begin.elapsed()).filter(|early| *early > SLEEP_AT_LEAST) {
            std::thread::sleep(early);
        }
        let sent_us = begin.elapsed().as_micros() as u64;
        let bin = u16::try_from(sent_us / BIN_US).unwrap_or(u16::MAX);
        let car = Car { run, index, bin, sent_us };
        send(socket, to, &envelope(Packet::Car(car)).padded(PAYLOAD_BYTES))?;
        let bin = usize::from(bin);
        if sent.by_bin.len() <= bin {
            sent.by_bin.resize(bin + 1, 0);
        }
        if let Some(count) = sent.by_bin.get_mut(bin) {
            *count += 1;
        }
        sent.lasted_us = sent_us;
        index += 1;
    }
}

/// A socket that stays full for long has a shaper below it that passes nothing on.
fn send(socket: &UdpSocket, to: SocketAddr, datagram: &[u8]) -> std::io::Result<()> {
    let give_up = Instant::now() + FULL_PATIENCE;
    loop {
        match socket.send_to(datagram, to) {
            Ok(_) => return Ok(()),
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock && Instant::now() < give_up => {
                std::thread::sleep(SLEEP_AT_LEAST);
            }
            // The neighbour's answer, or its absence, is what this measures.
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionRefused => return Ok(()),
            Err(error) => return Err(error),
        }
    }
}

/// A probe packet without the headers of UDP, IP and Ethernet.
pub(super) const PAYLOAD_BYTES: usize = PROBE_FRAME_BYTES as usize - 42;

/// Bytes that an interface counts for a probe packet: a tunnel the IP packet in it, a port the whole frame.
const INSIDE_BYTES: u64 = PAYLOAD_BYTES as u64 + 28;

/// The kernel's charge for a packet in a socket's buffer; it allows twice the configured buffer size.
const PACKET_IN_KERNEL_BYTES: usize = 1_152;
const MOST_IN_KERNEL: usize = 1_024;

/// The buffer of a small switch, roughly.
const BURST_PACKETS: u32 = 64;
const BURST_REST: Duration = Duration::from_millis(20);
pub(super) const FULL_PATIENCE: Duration = Duration::from_millis(500);

/// The kernel's timers are no finer: a packet that is due sooner is sent with the one before it.
const SLEEP_AT_LEAST: Duration = Duration::from_micros(500);

#[cfg(test)]
mod tests {
    use super::*;

    const ORDER: RateOrder = RateOrder {
        rate_bps: 8_000_000,
        duration: Duration::from_millis(200),
        out: true,
        frame_bytes: 1_000,
    };

    #[test]
    fn rates_are_those_of_frames_and_torn_bins_are_left_out() {
        let sent = Sent { by_bin: vec![50, 50, 50, 50], lasted_us: 199_000 };
        let arrived = Arrivals {
            packets: 150,
            lasted_us: 199_000,
            by_bin: vec![50, 50, 25, 25],
            by_sent_bin: vec![50, 50, 25, 25],
            longest_loss: 1,
            ..Arrivals::default()
        };
        let probe = RateProbe::of(ORDER, &sent, &arrived);
        assert_eq!((probe.offered_bps, probe.received_bps), (8_000_000, 5_989_949));
        assert_eq!(probe.bins_bps, [8_000_000, 8_000_000, 4_000_000]);
        assert_eq!(probe.lost_share_by_bin, [0.0, 0.0, 0.5, 0.5]);
    }

    #[test]
    fn what_waits_below_the_sender_is_a_millisecond_or_two_packets() {
        let packets = |rate_bps| RateOrder { rate_bps, ..ORDER }.buffer_bytes() / PACKET_IN_KERNEL_BYTES;
        assert_eq!([1_000, 20_000_000, 800_000_000, u64::MAX].map(packets), [2, 2, 100, MOST_IN_KERNEL]);
    }

    #[test]
    fn what_is_not_of_the_train_was_sent_by_others() {
        let sent = Sent { by_bin: vec![50, 50], lasted_us: 99_000 };
        let probe = RateProbe::of(ORDER, &sent, &Arrivals { packets: 80, burst: 60, ..Arrivals::default() });
        let second = Duration::from_secs(1);
        assert_eq!(probe.others_bps((100 + 64) * INSIDE_BYTES + 1_000, second, true), 8_000);
        assert_eq!(probe.others_bps((80 + 60) * INSIDE_BYTES + 1_000, second, false), 8_000);
        assert_eq!(probe.others_bps(0, second, true), 0);
    }

    #[test]
    fn a_result_is_the_same_behind_the_session() {
        let sent = Sent { by_bin: vec![50, 50], lasted_us: 99_000 };
        let arrived = Arrivals { packets: 75, burst: 60, by_sent_bin: vec![50, 25], ..Arrivals::default() };
        let probe = RateProbe::of(ORDER, &sent, &arrived);
        let said = probe.clone().said(7);
        assert_eq!((said.others_bps, said.lost_ppm_by_bin.as_slice()), (7, &[0, 500_000][..]));
        assert_eq!(RateProbe::told(said, ORDER.frame_bytes), probe);
    }

    #[test]
    fn nothing_at_all_is_a_rate_of_nothing() {
        let probe = RateProbe::of(ORDER, &Sent { by_bin: vec![10], lasted_us: 40_000 }, &Arrivals::default());
        assert_eq!((probe.received, probe.received_bps, probe.lost_share_by_bin), (0, 0, vec![1.0]));
    }
}
