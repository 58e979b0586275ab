//! The receiver of a step.
use downburst_model::{Micros, Now};

use crate::delays::Histogram;
use crate::excess::Excesses;
use crate::numbers::{Arrival, Numbers};
use crate::tcp::Held;
use crate::{Figures, Packet};

/// Counts the arrivals of one step, in bounded memory however long it is.
#[derive(Clone, Debug)]
pub struct Receiver {
    frame_bytes: u64,
    /// A number from here on is not of this step.
    most_packets: u64,
    numbers: Numbers,
    excesses: Excesses,
    /// Of a connection, whose losses are records that come late.
    held: Option<Held>,
    jitter: Jitter,
    whole: Tally,
    second: Tally,
    /// The numbers that had gone by when the second began.
    second_from: u64,
    /// Late packets of an earlier second, which has reported them as lost.
    returned: u64,
    /// Packets that the receiving socket dropped since the step began.
    dropped: u64,
    /// Those of them that no second has reported.
    unreported: u64,
}

/// The arrivals within some time.
#[derive(Clone, Debug, Default)]
struct Tally {
    received: u64,
    reordered: u64,
    duplicated: u64,
    first: Option<Micros>,
    last: Micros,
    delays: Histogram,
}

/// RFC 3550, section 6.4.1, in sixteenths of a microsecond.
#[derive(Clone, Copy, Debug, Default)]
struct Jitter {
    last_transit_us: Option<i64>,
    sixteenths: Option<u64>,
}

impl Receiver {
    /// `most_packets`: a step's sender can't send more.
    pub fn new(frame_bytes: u64, most_packets: u64) -> Self {
        Self {
            frame_bytes,
            most_packets,
            numbers: Numbers::default(),
            excesses: Excesses::default(),
            held: None,
            jitter: Jitter::default(),
            whole: Tally::default(),
            second: Tally::default(),
            second_from: 0,
            returned: 0,
            dropped: 0,
            unreported: 0,
        }
    }

    /// Counts records of a connection at this rate, over a path with this round trip.
    pub fn over_tcp(self, rate_bps: u64, round_trip: Micros) -> Self {
        let held = Some(Held::new(rate_bps, self.frame_bytes, round_trip));
        Self { held, ..self }
    }

    /// Takes the number of packets that the receiving socket has dropped since the step began.
    pub fn dropped(&mut self, total: u64) {
        self.unreported = self.unreported.saturating_add(total.saturating_sub(self.dropped));
        self.dropped = self.dropped.max(total);
    }

    /// Takes a packet of the step.
    pub fn took(&mut self, now: Now, packet: &Packet) {
        if packet.number >= self.most_packets {
            return;
        }
        let arrival = self.numbers.took(packet.number);
        match arrival {
            Arrival::TooLate => return,
            Arrival::Copy => return self.each(|tally| tally.duplicated = tally.duplicated.saturating_add(1)),
            Arrival::Late => {
                self.excesses.late(packet.number);
                self.each(|tally| tally.reordered = tally.reordered.saturating_add(1));
            }
            Arrival::Next { .. } => {}
        }
        let transit_us = now.wall.0.saturating_sub(packet.sent.0);
        self.jitter.took(transit_us);
        self.each(|tally| tally.took(now.monotonic, transit_us));
        if let Arrival::Next { skipped } = arrival {
            self.look_at_excess(now.monotonic, packet.number, skipped, transit_us);
        }
    }

    /// The packets that arrived, copies not counted.
    pub fn received(&self) -> u64 {
        self.whole.received
    }

    /// The last arrival.
    pub fn last_arrival(&self) -> Option<Micros> {
        self.whole.first.map(|_| self.whole.last)
    }

    /// Ends a second and begins the next. The sums of `sent` and `lost` over all seconds are those of the numbers up to
    /// the highest that arrived: a late packet is taken off the losses of the second in which it comes, or of a
    /// later one.
    pub fn second(&mut self) -> Figures {
        let next = self.numbers.next();
        let sent = next.saturating_sub(self.second_from);
        self.second_from = next;
        let second = std::mem::take(&mut self.second);
        let missing = sent.saturating_sub(second.received);
        let lost = missing.saturating_sub(self.returned);
        let more = second.received.saturating_sub(sent);
        self.returned = self.returned.saturating_sub(missing.saturating_sub(lost)).saturating_add(more);
        let dropped_here = self.unreported.min(lost);
        self.unreported = self.unreported.saturating_sub(dropped_here);
        let figures = second.figures(self.frame_bytes, sent, lost.saturating_sub(dropped_here), self.jitter);
        Figures { dropped_here, ..figures }
    }

    /// The figures of the whole step, of which the sender says that it sent so many packets.
    pub fn finish(self, sent: u64) -> Figures {
        let sent = sent.max(self.whole.received);
        let figures = self.whole.figures(self.frame_bytes, sent, 0, self.jitter);
        let figures = Figures { dropped_here: self.dropped, ..figures }.of_sent(sent);
        let losses = if figures.lost == 0 { 0 } else { self.numbers.runs_of_lost(sent) };
        match &self.held {
            Some(held) => Figures { losses: held.runs(), excess: held.all(), ..figures },
            None => Figures { losses, excess: self.excesses.all(), ..figures },
        }
    }

    fn each(&mut self, mut add: impl FnMut(&mut Tally)) {
        add(&mut self.whole);
        add(&mut self.second);
    }

    fn look_at_excess(&mut self, now: Micros, number: u64, skipped: u64, transit_us: i64) {
        let at = now.since(self.whole.first.unwrap_or(now));
        let least_us = self.whole.delays.min().unwrap_or(transit_us);
        let excess_us = transit_us.abs_diff(least_us);
        if let Some(held) = &mut self.held {
            return held.took(at, excess_us);
        }
        if skipped > 0 {
            self.excesses.gap(at, number, skipped);
        }
        self.excesses.delayed(at, excess_us);
    }
}

impl Tally {
    fn took(&mut self, now: Micros, transit_us: i64) {
        self.received = self.received.saturating_add(1);
        self.first.get_or_insert(now);
        self.last = now;
        self.delays.add(transit_us);
    }

    fn figures(&self, frame_bytes: u64, sent: u64, lost: u64, jitter: Jitter) -> Figures {
        Figures {
            sent,
            received: self.received,
            lost,
            reordered: self.reordered,
            duplicated: self.duplicated,
            bytes: self.received.saturating_mul(frame_bytes),
            elapsed_us: self.last.since(self.first.unwrap_or(self.last)).0,
            delay: self.delays.delays(),
            jitter_us: jitter.sixteenths.map(|sixteenths| sixteenths / 16),
            losses: 0,
            excess: Vec::new(),
            dropped_here: 0,
        }
    }
}

impl Jitter {
    fn took(&mut self, transit_us: i64) {
        if let Some(last_us) = self.last_transit_us.replace(transit_us) {
            let jitter = self.sixteenths.unwrap_or(0);
            let change = transit_us.abs_diff(last_us);
            self.sixteenths = Some((jitter - jitter.div_ceil(16)).saturating_add(change));
        }
    }
}

#[cfg(test)]
mod tests {
    use downburst_model::WallMicros;

    use super::*;
    use crate::PacketKind;

    /// A packet that left each millisecond, and its arrival after a delay.
    fn took(receiver: &mut Receiver, number: u64, delay_us: u64) {
        let sent = number * 1_000;
        let packet =
            Packet { kind: PacketKind::Load, step: 0, number, sent: WallMicros(sent as i64 + 77_000_000) };
        let arrived = Micros(sent + delay_us);
        receiver.took(Now { monotonic: arrived, wall: WallMicros(arrived.0 as i64) }, &packet);
    }

    fn after(arrivals: impl IntoIterator<Item = (u64, u64)>) -> Receiver {
        let mut receiver = Receiver::new(1_000, 10_000);
        arrivals.into_iter().for_each(|(number, delay_us)| took(&mut receiver, number, delay_us));
        receiver
    }

    #[test]
    fn a_clean_step_has_its_rate_and_its_delay() {
        let figures = after((0..100).map(|number| (number, 20_000))).finish(100);
        assert_eq!((figures.sent, figures.received, figures.lost, figures.losses), (100, 100, 0, 0));
        assert_eq!((figures.bps(1_000), figures.bytes, figures.jitter_us), (8_000_000, 100_000, Some(0)));
        let delay = figures.delay.unwrap().corrected(-77_000_000);
        assert_eq!((delay.min, delay.median, delay.p99, delay.max), (20_000, 20_000, 20_000, 20_000));
    }

    #[test]
    fn lost_late_and_doubled_packets_are_counted_apart() {
        let arrivals = [(0, 10), (1, 10), (3, 10), (2, 1_500), (3, 1_700), (7, 10)];
        let figures = after(arrivals).finish(10);
        let counts = (figures.received, figures.lost, figures.reordered, figures.duplicated, figures.losses);
        assert_eq!(counts, (5, 5, 1, 1, 2));
        let lost: Vec<(u64, u64)> = figures.excess.iter().map(|excess| (excess.at_us, excess.lost)).collect();
        assert_eq!(lost, [(7_000, 3)]);
    }

    #[test]
    fn seconds_add_up_to_the_step() {
        let mut receiver = after([(0, 10), (1, 10), (4, 10)]);
        let first = receiver.second();
        took(&mut receiver, 2, 9_000);
        let second = receiver.second();
        took(&mut receiver, 8, 10);
        let third = receiver.second();
        let seconds = [first, second, third].map(|it| (it.sent, it.received, it.lost, it.reordered));
        assert_eq!(seconds, [(5, 3, 2, 0), (0, 1, 0, 1), (4, 1, 2, 0)]);
        let whole = receiver.finish(9);
        assert_eq!((whole.sent, whole.received, whole.lost), (9, 5, 4));
    }

    #[test]
    fn packets_that_the_socket_dropped_are_not_lost_on_the_path() {
        let mut receiver = after([(0, 10), (4, 10)]);
        receiver.dropped(2);
        let first = receiver.second();
        took(&mut receiver, 5, 10);
        receiver.dropped(7);
        let second = receiver.second();
        took(&mut receiver, 9, 10);
        let third = receiver.second();
        let seconds = [first, second, third].map(|it| (it.sent, it.received, it.lost, it.dropped_here));
        assert_eq!(seconds, [(5, 2, 1, 2), (1, 1, 0, 0), (4, 1, 0, 3)]);
        let whole = receiver.clone().finish(20);
        assert_eq!((whole.received, whole.lost, whole.dropped_here), (4, 9, 7));
        let all_here = receiver.finish(11);
        assert_eq!((all_here.lost, all_here.dropped_here, all_here.losses), (0, 7, 0));
    }

    #[test]
    fn jitter_is_that_of_the_standard() {
        let steady = after((0..2_000).map(|number| (number, 100 + number % 2 * 160))).finish(2_000);
        assert!((158..=160).contains(&steady.jitter_us.unwrap()), "{:?}", steady.jitter_us);
        assert_eq!(after([(0, 10)]).finish(1).jitter_us, None);
    }

    #[test]
    fn the_excess_after_a_loss_returns() {
        let delays = (0..10).chain(11..100).map(|number: u64| {
            (number, 20_000 + if number > 10 { 40_000_u64.saturating_sub((number - 11) * 500) } else { 0 })
        });
        let excess = after(delays).finish(100).excess;
        assert_eq!((excess.len(), excess[0].lost, excess[0].excess_us), (1, 1, 40_000));
        assert_eq!(excess[0].recovery_us, Some(39_500));
    }

    #[test]
    fn numbers_beyond_the_step_and_a_false_count_do_no_harm() {
        let mut receiver = after([(0, 10)]);
        took(&mut receiver, 10_000, 10);
        assert_eq!((receiver.received(), receiver.last_arrival()), (1, Some(Micros(10))));
        assert_eq!(receiver.clone().finish(0).sent, 1);
        assert_eq!(receiver.finish(u64::MAX).lost, u64::MAX - 1);
        let silent = Receiver::new(1_000, 10);
        assert_eq!((silent.last_arrival(), silent.finish(10).losses), (None, 1));
    }
}
