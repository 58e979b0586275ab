//! The way of an LDM's products into feeds.
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use downburst_ldm6::{FeedType, Ident, LdmOrigin, ProductInfo, Signature, Taken};

use super::rig::{LARGEST_BYTES, TestHub};
use crate::context::{Context, Shared};
use crate::hub::{Event, Hub};
use crate::intake::{Counts, Intake, Settled};
use crate::lock;
use crate::routes::Routes;

/// A connection's intake at a hub with three feeds; its peer may send the types of the first two.
struct Taking {
    hub: Arc<TestHub>,
    counts: Arc<Counts>,
    intake: Intake,
}

impl Taking {
    fn new() -> Self {
        let feeds = [("WARNINGS", "IDS", Some("^W")), ("TEXT", "IDS|DDPLUS", None), ("GRIDS", "NGRID", None)];
        let hub = TestHub::new("hub.example", &feeds);
        let shared = Arc::new(Shared::default());
        shared.route(Routes::of(hub.feeds()));
        let context = Context::new(Arc::clone(&hub) as Arc<dyn Hub>, &shared);
        let counts = Arc::<Counts>::default();
        let intake = Intake::new(&context, "ldm.example", types("IDS|DDPLUS"), Arc::clone(&counts));
        Self { hub, counts, intake }
    }

    async fn take(&mut self, info: &ProductInfo, bytes: &'static [u8]) -> Settled {
        self.intake.take(Taken::Begins(info.clone())).unwrap();
        self.intake.take(Taken::Bytes(Bytes::from_static(bytes))).unwrap();
        self.intake.take(Taken::Ends).unwrap();
        self.intake.settled().await
    }

    fn faults(&self) -> Vec<String> {
        lock(&self.hub.faults).clone()
    }
}

fn types(expression: &str) -> FeedType {
    expression.parse().unwrap()
}

fn info(feed: &str, ident: &str, number: u8, size: usize) -> ProductInfo {
    ProductInfo {
        feed: types(feed),
        ident: Ident::new(ident.to_owned()).unwrap(),
        origin: LdmOrigin::new("host.example".to_owned()).unwrap(),
        signature: Signature([number; 16]),
        size: u32::try_from(size).unwrap(),
        ..ProductInfo::default()
    }
}

#[tokio::test]
async fn a_product_goes_into_the_first_feed_of_its_type_whose_pattern_it_matches() {
    let mut taking = Taking::new();
    let (warning, text) = (info("IDS", "WFUS54 KFWD", 1, 5), info("IDS", "SAUS70 KWBC", 2, 4));
    assert_eq!(taking.take(&warning, b"storm").await, Settled::First(Signature([1; 16])));
    assert_eq!(taking.take(&text, b"calm").await, Settled::First(Signature([2; 16])));
    assert_eq!(taking.hub.feed("WARNINGS").ids(), ["WFUS54 KFWD"]);
    assert_eq!(taking.hub.feed("TEXT").ids(), ["SAUS70 KWBC"]);
    assert_eq!(taking.take(&text, b"calm").await, Settled::Again(Signature([2; 16])));
    let counts = &taking.counts;
    let counted = [&counts.stored, &counts.bytes, &counts.duplicates].map(|it| it.load(Ordering::Relaxed));
    assert_eq!(counted, [2, 9, 1]);
}

#[tokio::test]
async fn an_offer_is_taken_if_the_product_is_neither_known_nor_without_a_feed() {
    let mut taking = Taking::new();
    let text = info("IDS", "SAUS70 KWBC", 2, 4);
    let offered = |info: &ProductInfo| Taken::Offered(info.clone());
    assert_eq!(taking.intake.take(offered(&text)).unwrap(), Some(true));
    taking.take(&text, b"calm").await;
    assert_eq!(taking.intake.take(offered(&text)).unwrap(), Some(false), "it is stored");
    let grid = info("NGRID", "YTQA98", 3, 4);
    assert_eq!(taking.intake.take(offered(&grid)).unwrap(), Some(false), "its sender may not send these");
    assert!(taking.hub.feed("GRIDS").ids().is_empty());
}

#[tokio::test]
async fn what_no_feed_takes_is_passed_over_and_named_once() {
    let mut taking = Taking::new();
    for number in 1..=3 {
        let radar = info("NEXRAD2", "L2-BZIP2/KFWS", number, 1);
        assert_eq!(taking.take(&radar, b"r").await, Settled::Nothing(Signature([number; 16])));
    }
    assert_eq!(taking.counts.passed_over.load(Ordering::Relaxed), 3);
    let [fault] = taking.faults().try_into().unwrap();
    assert!(fault.contains("NEXRAD2 from ldm.example are ignored"), "{fault}");
}

#[tokio::test]
async fn a_product_that_is_too_large_or_called_as_the_hub_s_own_is_dropped() {
    let mut taking = Taking::new();
    let large = info("IDS", "SAUS70 KWBC", 1, LARGEST_BYTES as usize + 1);
    assert_eq!(taking.take(&large, b"").await, Settled::Nothing(Signature([1; 16])));
    let own = info("IDS", &format!("{}TEXT", downburst_model::HEARTBEAT_PREFIX), 2, 1);
    assert_eq!(taking.take(&own, b"x").await, Settled::Nothing(Signature([2; 16])));
    assert_eq!(taking.counts.dropped.load(Ordering::Relaxed), 2);
    let faults = taking.faults();
    assert!(faults[0].contains("it is too large") && faults[1].contains("products of its own"), "{faults:?}");
    assert!(taking.hub.feed("TEXT").ids().is_empty());
}

#[tokio::test]
async fn a_large_product_goes_by_a_spool_file_that_goes_if_the_product_breaks_off() {
    let mut taking = Taking::new();
    let large = info("IDS", "SAUS70 KWBC", 1, 600_000);
    let spool = taking.hub.data_dir().join("ldm/spool");
    taking.intake.take(Taken::Begins(large.clone())).unwrap();
    assert_eq!(std::fs::read_dir(&spool).unwrap().count(), 1);
    taking.intake.take(Taken::Broken).unwrap();
    assert_eq!(std::fs::read_dir(&spool).unwrap().count(), 0);
    let bytes: &'static [u8] = Box::leak(vec![7; 600_000].into_boxed_slice());
    assert_eq!(taking.take(&large, bytes).await, Settled::First(Signature([1; 16])));
    assert_eq!(taking.counts.bytes.load(Ordering::Relaxed), 600_000);
}

#[tokio::test]
async fn a_line_of_rtstats_is_told_whether_a_feed_takes_it_or_not() {
    let mut taking = Taking::new();
    let line = info("EXP", "rtstats-7/host/IDS/origin", 1, 4);
    taking.take(&line, b"line").await;
    assert_eq!(*lock(&taking.hub.events), [Event::Rtstats { line: "line".to_owned() }]);
    assert!(taking.faults().is_empty());
}
