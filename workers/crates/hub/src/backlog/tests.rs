use std::convert::Infallible;

use downburst_session::Filter;

use super::testlog::TestLog;
use super::*;
use crate::site_config::subscriptions;

fn line(with: serde_json::Value) -> SiteLine {
    let mut line = serde_json::json!({
        "site": "oslo", "credentials": [], "active": true,
        "subscriptions": [{"feed": "TEST", "pattern": "^x", "not_pattern": null}],
    });
    line.as_object_mut().unwrap().extend(with.as_object().unwrap().clone());
    serde_json::from_value(line).unwrap()
}

fn log() -> TestLog {
    let mut log = TestLog::default();
    for number in 1..=100 {
        log.store(&format!("{}{number:03}", if number % 4 == 0 { "x" } else { "y" }));
    }
    log
}

fn lacking(log: &TestLog, line: &SiteLine, position: Option<Position>, counts: &mut Counts) -> FeedBacklog {
    let (_, filter) = Filter::of_subscriptions(&subscriptions(line)).into_iter().next().unwrap();
    let look = Look {
        log,
        filter,
        position,
        resends: line.resends.iter().collect(),
        left: BTreeMap::new(),
        max_age_us: None,
        is_connected: false,
        now: WallMicros(1_000_000_000),
    };
    let found: Result<_, Infallible> = look.lacking(counts);
    found.unwrap()
}

fn stands_at(settled: u64) -> Option<Position> {
    let (site, feed) = (SiteName::parse("oslo").unwrap(), FeedName::parse("TEST").unwrap());
    let mut positions = Positions::default();
    positions.stands(&site, &feed, (Epoch(7), [(0, settled)].into_iter().collect()));
    positions.of(&site, &feed)
}

fn fresh() -> Counts {
    let mut counts = Counts::default();
    counts.begin();
    counts
}

#[test]
fn what_a_site_wants_and_did_not_settle_is_its_backlog() {
    let (mut log, line) = (log(), line(serde_json::json!({})));
    let found = lacking(&log, &line, stands_at(40), &mut fresh());
    assert_eq!((found.products, found.bytes, found.lost_products), (15, 60, 0));
    assert_eq!(found.oldest_us, Some(WallMicros(7)));
    log.first_kept = 61;
    let found = lacking(&log, &line, stands_at(40), &mut fresh());
    assert_eq!((found.products, found.lost_products, found.lost_bytes), (10, 5, 20));
    assert_eq!(lacking(&log, &line, None, &mut fresh()).products, 0, "it begins at the head");
}

#[test]
fn a_site_that_stands_in_another_log_is_not_known() {
    let (site, feed) = (SiteName::parse("oslo").unwrap(), FeedName::parse("TEST").unwrap());
    let mut positions = Positions::default();
    positions.stands(&site, &feed, (Epoch(6), [(0, 5)].into_iter().collect()));
    let found = lacking(&log(), &line(serde_json::json!({})), positions.of(&site, &feed), &mut fresh());
    assert!(!found.known && found.products == 0);
}

#[test]
fn a_resend_counts_what_it_wants_of_what_the_log_still_has() {
    let mut log = log();
    log.first_kept = 51;
    let filter = serde_json::json!({"pattern": "^y", "not_pattern": null});
    let line = line(serde_json::json!({"resends": [{
        "resend": 3, "feed": "TEST", "kind": "resend", "from_us": 0, "to_us": 9, "wanted": filter, "had": [],
    }]}));
    let found = lacking(&log, &line, stands_at(100), &mut fresh());
    assert_eq!((found.products, found.lost_products), (37, 0), "what is gone is left out");
}

#[test]
fn what_changed_is_told_and_each_site_in_its_turn() {
    let (log, mut backlogs, site) = (log(), Backlogs::default(), line(serde_json::json!({})));
    let mut tell = |settled: u64| {
        backlogs.tell([site.clone()], |line, counts| {
            let feeds = vec![lacking(&log, &line, stands_at(settled), counts)];
            Some(SiteBacklog { site: line.site, feeds })
        })
    };
    assert_eq!(tell(40).len(), 1);
    let again: usize = (0..60).map(|_| tell(40).len()).sum();
    assert_eq!(again, 2, "once in thirty tellings");
    assert_eq!(tell(44).len(), 1);
}
