//! Counts of products and bytes since the last report.
use std::collections::BTreeMap;

use downburst_model::{Epoch, FeedName, LegId, Sequence};
use downburst_vcmtp::SenderStats;

use super::lines::{FeedTraffic, LegTraffic};
use crate::leg::LegTrial;

/// Arrivals of products, by feed.
#[derive(Debug, Default)]
pub struct Arrivals(BTreeMap<FeedName, Arrived>);

#[derive(Debug, Default)]
struct Arrived {
    products: u64,
    bytes: u64,
    sizes: Vec<u64>,
}

/// The end of a feed's log.
#[derive(Clone, Debug)]
pub struct FeedHead {
    /// The feed.
    pub feed: FeedName,
    /// The life of its log.
    pub epoch: Epoch,
    /// The last number.
    pub head: Sequence,
}

/// Bytes and products that were sent, by leg.
#[derive(Debug, Default)]
pub struct LegCounts(BTreeMap<LegId, LegCount>);

/// The state of a running leg, beside its counts.
#[derive(Debug, Default)]
pub struct LegState {
    /// Product bytes that wait in its sender.
    pub backlog_bytes: u64,
    /// Its present rate, if it is multicast.
    pub rate_bps: Option<u64>,
    /// The losses of its sites at its rates since the last report.
    pub trials: Vec<LegTrial>,
}

#[derive(Debug)]
struct LegCount {
    feed: FeedName,
    egress_bytes: u64,
    repair_bytes: u64,
    group_repair_bytes: u64,
    coded_repair_bytes: u64,
    channel_repair_bytes: u64,
    products: u64,
    product_bytes: u64,
}

impl Arrivals {
    /// Counts a product.
    pub fn arrived(&mut self, feed: &FeedName, bytes: u64) {
        let arrived = self.0.entry(feed.clone()).or_default();
        arrived.products += 1;
        arrived.bytes += bytes;
        if arrived.sizes.len() < SIZE_SAMPLES {
            arrived.sizes.push(bytes);
        }
    }

    /// The report about all feeds.
    pub fn report(mut self, feeds: impl IntoIterator<Item = FeedHead>) -> Vec<FeedTraffic> {
        let report = |FeedHead { feed, epoch, head }| {
            let arrived = self.0.remove(&feed).unwrap_or_default();
            FeedTraffic {
                feed,
                products: arrived.products,
                bytes: arrived.bytes,
                sizes: arrived.sizes,
                head,
                epoch: epoch.0.to_string(),
            }
        };
        feeds.into_iter().map(report).collect()
    }
}

impl LegCounts {
    /// Counts bytes of a session that belong to a leg.
    pub fn session_bytes(&mut self, feed: &FeedName, leg: LegId, bytes: u64, repair: bool) {
        let count = self.leg(feed, leg);
        count.egress_bytes += bytes;
        count.repair_bytes += if repair { bytes } else { 0 };
    }

    /// Counts a repair to a single site as a datagram.
    pub fn channel_bytes(&mut self, feed: &FeedName, leg: LegId, bytes: u64) {
        let count = self.leg(feed, leg);
        count.egress_bytes += bytes;
        count.repair_bytes += bytes;
        count.channel_repair_bytes += bytes;
    }

    /// Counts datagrams of a multicast leg: the difference of its sender's counters since `told`.
    pub fn datagrams(&mut self, feed: &FeedName, leg: LegId, told: &SenderStats, stats: &SenderStats) {
        let repair_bytes = stats.group_repair_bytes - told.group_repair_bytes;
        let count = self.leg(feed, leg);
        count.egress_bytes += stats.datagram_bytes - told.datagram_bytes;
        count.repair_bytes += repair_bytes;
        count.group_repair_bytes += repair_bytes;
        count.coded_repair_bytes += stats.coded_repair_bytes - told.coded_repair_bytes;
    }

    /// Counts products that were sent completely.
    pub fn sent(&mut self, feed: &FeedName, leg: LegId, products: u64, bytes: u64) {
        let count = self.leg(feed, leg);
        count.products += products;
        count.product_bytes += bytes;
    }

    /// True if nothing was counted.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The report about the legs with traffic. `sites` has the number of sites on each leg.
    pub fn report(self, sites: &BTreeMap<LegId, u64>, state: impl Fn(LegId) -> LegState) -> Vec<LegTraffic> {
        let report = |(leg, count): (LegId, LegCount)| {
            let LegState { backlog_bytes, rate_bps, trials } = state(leg);
            LegTraffic {
                leg,
                feed: count.feed,
                egress_bytes: count.egress_bytes,
                repair_bytes: count.repair_bytes,
                group_repair_bytes: count.group_repair_bytes,
                coded_repair_bytes: count.coded_repair_bytes,
                channel_repair_bytes: count.channel_repair_bytes,
                products: count.products,
                product_bytes: count.product_bytes,
                sites: sites.get(&leg).copied().unwrap_or(0),
                backlog_bytes,
                rate_bps,
                trials,
            }
        };
        self.0.into_iter().map(report).collect()
    }

    fn leg(&mut self, feed: &FeedName, leg: LegId) -> &mut LegCount {
        self.0.entry(leg).or_insert_with(|| LegCount {
            feed: feed.clone(),
            egress_bytes: 0,
            repair_bytes: 0,
            group_repair_bytes: 0,
            coded_repair_bytes: 0,
            channel_repair_bytes: 0,
            products: 0,
            product_bytes: 0,
        })
    }
}

/// Enough for the size quantiles of a busy second; more would only lengthen the line.
const SIZE_SAMPLES: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    fn feed(name: &str) -> FeedName {
        FeedName::parse(name).unwrap()
    }

    #[test]
    fn every_open_feed_is_reported_with_its_arrivals_and_a_closed_one_is_not() {
        let mut arrivals = Arrivals::default();
        for bytes in 1..=100 {
            arrivals.arrived(&feed("A"), bytes);
        }
        arrivals.arrived(&feed("closed"), 5);
        let head =
            |name, epoch, head| FeedHead { feed: feed(name), epoch: Epoch(epoch), head: Sequence(head) };
        let report = arrivals.report([head("A", u64::MAX, 100), head("B", 3, 7)]);
        let [busy, silent] = report.as_slice() else { panic!("{report:?}") };
        assert_eq!((busy.feed.as_str(), busy.products, busy.bytes), ("A", 100, 5_050));
        assert_eq!(busy.sizes, (1..=SIZE_SAMPLES as u64).collect::<Vec<_>>());
        assert_eq!((busy.head, busy.epoch.as_str()), (Sequence(100), "18446744073709551615"));
        assert_eq!((silent.products, silent.sizes.len(), silent.head), (0, 0, Sequence(7)));
    }

    #[test]
    fn repairs_are_egress_and_counted_by_their_way() {
        let (mut counts, leg) = (LegCounts::default(), LegId(4));
        assert!(counts.is_empty());
        counts.session_bytes(&feed("A"), leg, 1_000, false);
        counts.session_bytes(&feed("A"), leg, 10, true);
        counts.channel_bytes(&feed("A"), leg, 20);
        let told = SenderStats { datagram_bytes: 500, group_repair_bytes: 50, ..SenderStats::default() };
        let stats = SenderStats {
            datagram_bytes: 900,
            group_repair_bytes: 80,
            coded_repair_bytes: 7,
            ..SenderStats::default()
        };
        counts.datagrams(&feed("A"), leg, &told, &stats);
        counts.sent(&feed("A"), leg, 3, 600);
        assert!(!counts.is_empty());
        let report = counts.report(&BTreeMap::new(), |_| LegState::default());
        let expected = LegTraffic {
            leg,
            feed: feed("A"),
            egress_bytes: 1_000 + 10 + 20 + 400,
            repair_bytes: 10 + 20 + 30,
            group_repair_bytes: 30,
            coded_repair_bytes: 7,
            channel_repair_bytes: 20,
            products: 3,
            product_bytes: 600,
            sites: 0,
            backlog_bytes: 0,
            rate_bps: None,
            trials: Vec::new(),
        };
        assert_eq!(report, [expected]);
    }

    #[test]
    fn each_leg_has_its_sites_and_its_backlog() {
        let mut counts = LegCounts::default();
        counts.sent(&feed("A"), LegId(1), 1, 1);
        counts.sent(&feed("B"), LegId(2), 1, 1);
        let state = |leg: LegId| LegState { backlog_bytes: leg.0.into(), ..LegState::default() };
        let report = counts.report(&[(LegId(2), 9)].into(), state);
        let found = report.iter().map(|it| (it.leg.0, it.feed.as_str(), it.sites, it.backlog_bytes));
        assert_eq!(found.collect::<Vec<_>>(), [(1, "A", 0, 1), (2, "B", 9, 2)]);
    }
}
