//! The rate to a site with known access stays within that access.
use super::*;

const BYTES_PER_SECOND: u64 = 1_000_000;

impl Bench {
    /// A session at 8 Mb/s, with 100 products of 20 kB in its log, none of them written yet.
    fn paced() -> Self {
        let mut bench = Self::serving(vec![position(&[(0, 0)])], 0);
        bench.messages(0);
        bench.hub.handle(at(0), HubInput::Room { stream: StreamId::FIRST, bytes: 100 << 20 });
        bench.hub.handle(at(0), HubInput::Pace(Some(8 * BYTES_PER_SECOND)));
        bench
    }

    fn publish_grids(&mut self) {
        self.head(100);
        self.messages(0);
        self.answer(0, 100, (1..=100).map(|number| entry(number, "x")).collect());
    }

    /// Advances time by the machine's deadlines; returns the bytes written.
    fn run_to(&mut self, from: u64, to: u64) -> u64 {
        let (mut now, mut written) = (from, 0);
        loop {
            while let Some(output) = self.hub.poll(at(now)) {
                if let HubOutput::Write { bytes, .. } = output {
                    written += bytes.len() as u64;
                    self.decoder.push(bytes);
                }
            }
            let due = self.hub.deadline().map_or(to, |due| due.0.div_ceil(1_000));
            if due >= to {
                return written;
            }
            assert!(due > now, "a deadline that is over leads to nothing");
            now = due;
        }
    }

    fn sequences(&mut self) -> Vec<u64> {
        let frames = std::iter::from_fn(|| self.decoder.next().unwrap());
        let sequence = |frame| match frame {
            Frame::Message(Message::ProductBegin(begin)) => vec![begin.info.key.sequence.0],
            Frame::Train(train, _) => train.cars.iter().map(|car| car.sequence.0).collect(),
            _ => vec![],
        };
        frames.flat_map(sequence).collect()
    }
}

#[test]
fn a_bounded_site_is_sent_its_rate_and_no_more() {
    let mut bench = Bench::paced();
    bench.publish_grids();
    let written = bench.run_to(0, 1_000);
    let most = BYTES_PER_SECOND * 16 / 17;
    assert!(written <= most + 2 * SIZE as u64, "{written} bytes in a second");
    assert!(written >= most * 95 / 100, "{written} bytes in a second");
    bench.run_to(1_000, 3_000);
    assert_eq!(bench.sequences().len(), 100, "2 MB take a little over two seconds");
}

#[test]
fn a_warning_does_not_wait_for_the_rate() {
    let mut bench = Bench::paced();
    bench.publish_grids();
    bench.run_to(0, 500);
    let before = bench.sequences().len();
    assert!(before < 40, "the others wait, {before} went");
    bench.hub.handle(
        at(500),
        HubInput::Feed { feed: feed(), epoch: EPOCH, head: Sequence(101), unicast_leg: LegId(1) },
    );
    bench.run_to(500, 501);
    let warning = entry(101, "x");
    let info = ProductInfo { class: Class::Warning, ..warning.info };
    let (after, read_to) = (Sequence(100), Sequence(101));
    let entries = vec![Entry { info, bytes: warning.bytes }];
    bench.hub.handle(at(501), HubInput::Entries { feed: feed(), after, entries, read_to });
    bench.run_to(501, 502);
    assert!(bench.sequences().contains(&101), "it goes at once");
}

#[test]
fn a_bound_that_is_taken_away_holds_no_more() {
    let mut bench = Bench::paced();
    bench.publish_grids();
    bench.run_to(0, 100);
    bench.hub.handle(at(100), HubInput::Pace(None));
    bench.run_to(100, 101);
    assert_eq!(bench.sequences().len(), 100);
}

#[test]
fn what_is_late_keeps_to_its_bound_and_live_products_pass_it() {
    let mut bench = Bench::serving(vec![position(&[(0, 0)])], 100);
    bench.messages(0);
    bench.hub.handle(at(0), HubInput::Room { stream: StreamId::FIRST, bytes: 100 << 20 });
    bench.hub.handle(at(0), HubInput::PaceLate(Some(8 * BYTES_PER_SECOND)));
    bench.answer(0, 100, (1..=100).map(|number| entry(number, "x")).collect());
    let written = bench.run_to(0, 1_000);
    let most = BYTES_PER_SECOND * 16 / 17;
    assert!((most * 95 / 100..=most + 2 * SIZE as u64).contains(&written), "{written} bytes in a second");
    assert!(bench.hub.late_bytes() <= written);
    bench.sequences();
    bench.head(101);
    bench.messages(1_000);
    bench.answer(100, 101, vec![entry(101, "x")]);
    bench.run_to(1_000, 1_001);
    assert!(bench.sequences().contains(&101), "it goes at once");
    bench.hub.handle(at(1_001), HubInput::PaceLate(None));
    bench.run_to(1_001, 1_002);
    assert!(bench.sequences().contains(&100), "without a bound all goes");
}
