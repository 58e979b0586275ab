//! The capacity of a host's line, by what arrives while a group on it loses packets.
use downburst_model::Micros;
use downburst_session::LineReading;

/// Measures what a line carries by the packets of a group that arrive close behind each other.
///
/// A line that is sent more than it carries delivers its capacity, whatever is sent and however much waits in the
/// queue before it: the dispersion of packet trains. So the measurement ends with a pause, and counts only where
/// packets were lost. Everything that arrives in that time belongs to it: other groups, copies and repairs.
#[derive(Debug, Default)]
pub struct LineWatch {
    window: Option<Window>,
    lately: Sum,
}

/// A read of a group that found packets.
#[derive(Clone, Copy, Debug)]
pub struct GroupArrival {
    /// The packets.
    pub packets: u64,
    /// The highest number among them.
    pub newest: u64,
    /// The bytes of the read, in Ethernet frames.
    pub frame_bytes: u64,
    /// All bytes that have come to this host from its hubs, in Ethernet frames.
    pub host_bytes: u64,
}

/// A stretch of packets without a pause.
#[derive(Clone, Copy, Debug)]
struct Window {
    began: Micros,
    heard: Micros,
    /// The highest packet before it.
    after: u64,
    newest: u64,
    packets: u64,
    frame_bytes: u64,
    /// [`GroupArrival::host_bytes`] before it.
    host_bytes: u64,
}

/// The windows of about a second.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    began: Micros,
    micros: u64,
    sent: u64,
    lost: u64,
    frame_bytes: u64,
    host_bytes: u64,
}

impl LineWatch {
    /// Takes a read; returns the reading of about a second if a window with losses has ended.
    pub fn read(&mut self, now: Micros, arrival: &GroupArrival) -> Option<LineReading> {
        let window = match self.window {
            Some(window) if now.since(window.heard) <= PAUSE => window.with(now, arrival),
            _ => Window::begin(now, arrival),
        };
        if now.since(window.began) < WINDOW || window.packets < FEWEST {
            self.window = Some(window);
            return None;
        }
        self.window = Some(Window::begin(now, arrival));
        window.loses().then(|| self.add(now, &window, arrival.host_bytes))
    }

    fn add(&mut self, now: Micros, window: &Window, host_bytes: u64) -> LineReading {
        if now.since(self.lately.began) > LATELY {
            self.lately = Sum { began: window.began, ..Sum::default() };
        }
        let sum = &mut self.lately;
        sum.micros = sum.micros.saturating_add(now.since(window.began).0);
        sum.sent = sum.sent.saturating_add(window.sent());
        sum.lost = sum.lost.saturating_add(window.lost());
        sum.frame_bytes = sum.frame_bytes.saturating_add(window.frame_bytes);
        sum.host_bytes = sum.host_bytes.saturating_add(host_bytes.saturating_sub(window.host_bytes));
        sum.reading()
    }
}

impl Window {
    /// The packets of the first read arrived before it.
    fn begin(now: Micros, arrival: &GroupArrival) -> Self {
        let GroupArrival { newest, host_bytes, .. } = *arrival;
        Self { began: now, heard: now, after: newest, newest, packets: 0, frame_bytes: 0, host_bytes }
    }

    fn with(self, now: Micros, arrival: &GroupArrival) -> Self {
        Self {
            heard: now,
            newest: self.newest.max(arrival.newest),
            packets: self.packets.saturating_add(arrival.packets),
            frame_bytes: self.frame_bytes.saturating_add(arrival.frame_bytes),
            ..self
        }
    }

    fn sent(&self) -> u64 {
        self.newest.saturating_sub(self.after)
    }

    fn lost(&self) -> u64 {
        self.sent().saturating_sub(self.packets)
    }

    fn loses(&self) -> bool {
        self.lost().saturating_mul(100) > self.sent().saturating_mul(TOLERATED_PERCENT)
    }
}

impl Sum {
    fn reading(&self) -> LineReading {
        let arrived = self.sent.saturating_sub(self.lost).max(1);
        let offered_bytes = u128::from(self.frame_bytes) * u128::from(self.sent) / u128::from(arrived);
        LineReading {
            arrived_bps: bits_per_second(self.host_bytes.into(), self.micros),
            offered_bps: bits_per_second(offered_bytes, self.micros),
            packets: self.sent,
            lost: self.lost,
            windows: 1,
        }
    }
}

fn bits_per_second(bytes: u128, micros: u64) -> u64 {
    u64::try_from(bytes.saturating_mul(8_000_000) / u128::from(micros.max(1))).unwrap_or(u64::MAX)
}

/// The shortest measurement: the queue before a line holds less, and a thread that wakes late by 5 ms shifts its ends
/// by a twentieth.
const WINDOW: Micros = Micros::from_millis(200);

/// A longer silence of a group is a pause of its sender: 1,400 bytes at 250 kb/s take as long.
const PAUSE: Micros = Micros::from_millis(45);

/// The fewest packets of a window: one more or less changes its rate by a thirtieth.
const FEWEST: u64 = 30;

const LATELY: Micros = Micros::from_secs(1);

/// Loss that repair is for.
const TOLERATED_PERCENT: u64 = 3;

#[cfg(test)]
mod tests {
    use super::*;

    const FRAME_BYTES: u64 = 1_500;

    /// A group through a line with a queue: the reads of a host, one for each packet.
    struct Line {
        watch: LineWatch,
        now_us: u64,
        number: u64,
        host_bytes: u64,
    }

    impl Line {
        fn new() -> Self {
            Self { watch: LineWatch::default(), now_us: 0, number: 0, host_bytes: 0 }
        }

        /// A packet arrives after this time; before it, so many were lost and so many other bytes came.
        fn packet(&mut self, after_us: u64, lost: u64, other_bytes: u64) -> Option<LineReading> {
            self.now_us += after_us;
            self.number += 1 + lost;
            self.host_bytes += FRAME_BYTES + other_bytes;
            let (newest, host_bytes) = (self.number, self.host_bytes);
            let arrival = GroupArrival { packets: 1, newest, frame_bytes: FRAME_BYTES, host_bytes };
            self.watch.read(Micros(self.now_us), &arrival)
        }

        fn packets(&mut self, count: u64, after_us: u64, lost: u64, other_bytes: u64) -> Vec<LineReading> {
            (0..count).filter_map(|_| self.packet(after_us, lost, other_bytes)).collect()
        }
    }

    /// 4 Mb/s: a packet of 1,500 bytes each 3 ms.
    const AT_4_MBPS: u64 = 3_000;

    #[test]
    fn what_arrives_beside_losses_is_the_capacity_however_much_is_sent() {
        for lost in [1, 9] {
            let readings = Line::new().packets(600, AT_4_MBPS, lost, 0);
            let last = readings.last().unwrap();
            assert_eq!((last.arrived_bps, last.offered_bps), (4_000_000, 4_000_000 * (1 + lost)));
            assert_eq!(last.lost * (1 + lost), last.packets * lost);
        }
    }

    #[test]
    fn copies_and_repairs_on_the_line_belong_to_its_capacity() {
        let readings = Line::new().packets(200, 2 * AT_4_MBPS, 1, FRAME_BYTES);
        let last = readings.last().unwrap();
        assert_eq!((last.arrived_bps, last.offered_bps), (4_000_000, 4_000_000));
    }

    #[test]
    fn a_line_that_loses_no_more_than_repair_is_for_is_not_measured() {
        let mut line = Line::new();
        assert_eq!(line.packets(500, AT_4_MBPS, 0, 0), []);
        let few = (0..600).filter_map(|number| line.packet(AT_4_MBPS, u64::from(number % 40 == 0), 0));
        assert_eq!(few.count(), 0);
    }

    #[test]
    fn a_pause_of_the_sender_is_no_time_of_the_line() {
        let mut line = Line::new();
        for _ in 0..50 {
            assert_eq!(line.packets(60, AT_4_MBPS, 5, 0), [], "180 ms are too short");
            line.now_us += PAUSE.0;
        }
        let readings = line.packets(100, AT_4_MBPS, 5, 0);
        assert_eq!(readings.last().map(|it| it.arrived_bps), Some(4_000_000));
    }

    #[test]
    fn few_packets_and_numbers_that_go_back_are_no_measurement() {
        let mut line = Line::new();
        assert_eq!(line.packets(30, 40_000, 5, 0), [], "a second with 29 packets after the first one");
        line.number = 0;
        line.now_us += 2 * PAUSE.0;
        assert_eq!(line.packets(300, AT_4_MBPS, 0, 0), [], "the numbers begin anew");
    }

    #[test]
    fn a_reading_is_of_about_a_second() {
        let mut line = Line::new();
        line.packets(1_000, AT_4_MBPS, 4, 0);
        let readings = line.packets(4_000, AT_4_MBPS / 2, 4, 0);
        let last = readings.last().unwrap();
        assert_eq!(last.arrived_bps, 8_000_000);
        assert!(last.packets < 4_000, "{last:?}");
    }
}
