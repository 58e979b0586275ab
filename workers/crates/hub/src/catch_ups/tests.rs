use std::cell::RefCell;
use std::collections::BTreeSet;

use downburst_model::Sequence;
use downburst_session::FIRST_CATCH_UP;

use super::*;

const LIVE: LegId = LegId(5);
const STREAM: LegId = LegId(FIRST_CATCH_UP + 5);

/// A hub with one leg of a feed whose products have 1 MB.
struct Hub {
    line: Option<CatchUpLine>,
    settled_to: RefCell<BTreeMap<SiteName, u64>>,
    away: RefCell<BTreeSet<SiteName>>,
    progress: RefCell<Option<Progress>>,
}

impl CatchUpFacts for Hub {
    fn line(&self, _: &FeedName, live: LegId) -> Option<CatchUpLine> {
        self.line.clone().filter(|_| live == LIVE)
    }

    fn settled_to(&self, site: &SiteName, _: &FeedName, _: LegId) -> Option<u64> {
        self.settled_to.borrow().get(site).copied()
    }

    fn has(&self, site: &SiteName, _: &FeedName, _: u64, to: u64) -> bool {
        self.settled_to.borrow().get(site).is_some_and(|settled| *settled >= to)
    }

    fn bytes(&self, _: &FeedName, after: u64, to: u64) -> u64 {
        to.saturating_sub(after) * 1_000_000
    }

    fn awaits_others(&self, _: &FeedName, _: LegId) -> bool {
        !self.away.borrow().is_empty()
    }

    fn progress(&self, _: LegId) -> Option<Progress> {
        *self.progress.borrow()
    }

    fn rate_bps(&self, _: LegId) -> u64 {
        20_000_000
    }
}

fn name(site: &str) -> SiteName {
    SiteName::parse(site).unwrap()
}

fn feed() -> FeedName {
    FeedName::parse("NGRID").unwrap()
}

fn hub() -> Hub {
    let (group, port) = ("239.0.0.9".to_owned(), 17);
    let line = CatchUpLine { leg: STREAM, group, port, least_bytes: 10_000_000, wait_ms: 2_000, streams: 1 };
    let (settled_to, away, progress) =
        (RefCell::default(), RefCell::default(), RefCell::new(Some(Progress::default())));
    Hub { line: Some(line), settled_to, away, progress }
}

/// A hub, its decision, and a clock in milliseconds.
struct Run {
    hub: Hub,
    catch_ups: CatchUps,
    at_ms: u64,
}

impl Run {
    fn new() -> Self {
        Self { hub: hub(), catch_ups: CatchUps::default(), at_ms: 0 }
    }

    /// A site that has everything up to a number returns, and its live leg covers everything behind 100.
    fn returns(&mut self, site: &str, session: u64, settled_to: u64) {
        self.hub.settled_to.borrow_mut().insert(name(site), settled_to);
        let (site, feed, live, covered_after) = (name(site), feed(), LIVE, Sequence(100));
        let now = Micros::from_millis(self.at_ms);
        self.catch_ups.returned(now, Returned { site, session, feed, live, covered_after });
    }

    /// The steps after some time, in short.
    fn after(&mut self, millis: u64) -> Vec<String> {
        self.at_ms += millis;
        let steps = self.catch_ups.look(Micros::from_millis(self.at_ms), &self.hub);
        steps.into_iter().map(short).collect()
    }

    fn sent(&self, sent_to: u64, bytes: u64, repair_bytes: u64) {
        *self.hub.progress.borrow_mut() = Some(Progress { sent_to, bytes, repair_bytes });
    }

    fn settle(&self, site: &str, to: u64) {
        self.hub.settled_to.borrow_mut().insert(name(site), to);
    }
}

fn short(step: CatchUpStep) -> String {
    match step {
        CatchUpStep::Start(StreamStart { after, to, .. }) => format!("start {}..{}", after.0, to.0),
        CatchUpStep::Offer { site, .. } => format!("offer {site}"),
        CatchUpStep::Go(_) => "go".to_owned(),
        CatchUpStep::Leave { site, .. } => format!("leave {site}"),
        CatchUpStep::Release { site, .. } => format!("release {site}"),
        CatchUpStep::Stop(_) => "stop".to_owned(),
        CatchUpStep::Report(report) => format!("{} {}", report.state, report.saved_bytes),
    }
}

#[test]
fn sites_that_lack_the_same_get_one_stream_and_leave_it_with_everything() {
    let mut run = Run::new();
    run.returns("a", 1, 20);
    run.returns("b", 2, 40);
    run.returns("c", 3, 99);
    assert_eq!(run.after(100), ["release c", "start 40..100", "offer a", "offer b", "began 0"]);
    run.catch_ups.heard(STREAM, 1, true);
    assert_eq!(run.catch_ups.member(STREAM, 1), (true, true));
    assert_eq!(run.catch_ups.member(STREAM, 2), (true, false), "it is offered");
    assert_eq!(run.after(100), Vec::<String>::new(), "one is still to come");
    run.catch_ups.heard(STREAM, 2, true);
    assert_eq!(run.after(100), ["go"]);
    run.sent(100, 62_000_000, 1_000_000);
    run.settle("a", 100);
    assert_eq!(run.after(100), ["leave a"]);
    run.catch_ups.heard(STREAM, 1, false);
    run.settle("b", 100);
    assert_eq!(run.after(100), ["leave b"]);
    run.catch_ups.heard(STREAM, 2, false);
    assert_eq!(run.after(100), ["stop", "ended 58000000"], "120 MB were lacked, and 62 MB were sent");
    assert!(run.catch_ups.is_idle());
}

#[test]
fn a_single_site_waits_for_others_only_as_long_as_the_setting_says() {
    let mut run = Run::new();
    run.hub.away.borrow_mut().insert(name("b"));
    run.returns("a", 1, 20);
    assert_eq!(run.after(1_900), Vec::<String>::new());
    assert_eq!(run.after(100), ["release a"]);
    run.hub.away.borrow_mut().clear();
    run.returns("a", 2, 20);
    assert_eq!(run.after(0), ["release a"], "all others are here");
}

#[test]
fn a_site_that_returns_later_joins_the_rest_if_that_is_enough() {
    let mut run = Run::new();
    run.returns("a", 1, 0);
    run.returns("b", 2, 0);
    run.after(0);
    run.catch_ups.heard(STREAM, 1, true);
    run.catch_ups.heard(STREAM, 2, true);
    assert_eq!(run.after(0), ["go"]);
    run.sent(50, 50_000_000, 0);
    run.returns("c", 3, 0);
    assert_eq!(run.after(0), ["offer c"]);
    run.sent(95, 95_000_000, 0);
    run.returns("d", 4, 0);
    assert_eq!(run.after(0), ["release d"], "the last 5 MB are not worth it");
}

#[test]
fn a_stream_ends_when_no_repair_has_left_for_a_while_and_the_rest_comes_by_session() {
    let mut run = Run::new();
    run.returns("a", 1, 0);
    run.returns("b", 2, 0);
    run.after(0);
    run.catch_ups.heard(STREAM, 1, true);
    assert_eq!(run.after(1_600), ["go"], "those that hear it do not wait for ever");
    run.sent(100, 100_000_000, 0);
    run.settle("a", 90);
    assert_eq!(run.after(100), Vec::<String>::new());
    run.sent(100, 101_000_000, 1_000_000);
    assert_eq!(run.after(2_000), Vec::<String>::new(), "a repair left");
    assert_eq!(run.after(3_100), ["leave a", "leave b"]);
    assert_eq!(run.after(4_900), Vec::<String>::new());
    assert_eq!(run.after(100), ["stop", "ended 0"], "no answer counts as one");
}

#[test]
fn sessions_that_end_and_plans_that_change_end_a_stream() {
    let mut run = Run::new();
    run.returns("a", 1, 0);
    run.returns("b", 2, 0);
    run.after(0);
    run.catch_ups.heard(STREAM, 1, true);
    run.catch_ups.gone(2);
    assert_eq!(run.after(0), ["go"]);
    run.hub.line = None;
    assert_eq!(run.after(0), ["leave a"]);
    run.catch_ups.gone(1);
    assert_eq!(run.after(0), ["stop", "ended 0"]);
}

#[test]
fn no_more_streams_run_at_a_time_than_the_setting_allows() {
    let mut run = Run::new();
    run.hub.line.as_mut().unwrap().streams = 0;
    run.returns("a", 1, 0);
    run.returns("b", 2, 0);
    assert_eq!(run.after(0), ["release a", "release b"]);
    assert!(run.catch_ups.is_idle());
}

#[test]
fn a_stream_that_can_not_begin_is_forgotten() {
    let mut run = Run::new();
    run.returns("a", 1, 0);
    run.returns("b", 2, 0);
    run.after(0);
    run.catch_ups.failed(STREAM);
    assert!(run.catch_ups.is_idle());
}
