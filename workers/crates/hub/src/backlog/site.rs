//! The backlog of one site in the feeds that a node serves to it.
use std::collections::BTreeMap;
use std::sync::Arc;

use downburst_model::{FeedName, SiteName, WallMicros};
use downburst_session::{Filter, ResendLeft};

use super::{CountedLog, Counts, FeedBacklog, Look, Position, SiteBacklog};
use crate::site_config::{handling, subscriptions};
use crate::sites::SiteLine;

/// The facts of a node that counts backlogs.
pub trait BacklogFacts {
    /// The log of a feed.
    type Log: CountedLog;

    /// The log of a feed that is open on this node.
    fn log(&self, feed: &FeedName) -> Option<Arc<Self::Log>>;

    /// The site's position in a feed; `None`: it never received the feed.
    fn position(&self, site: &SiteName, feed: &FeedName) -> Option<Position>;

    /// The remaining parts of the site's resends.
    fn resends_left(&self, line: &SiteLine) -> BTreeMap<u64, ResendLeft>;

    /// The session of a site: true if the site currently takes its feeds from another hub; `None`: there is none.
    fn stands_by(&self, site: &SiteName) -> Option<bool>;

    /// The hub's wall clock.
    fn now(&self) -> WallMicros;

    /// A log could not be read.
    fn unreadable(&self, site: &SiteName, feed: &FeedName, error: <Self::Log as CountedLog>::Error);
}

/// The backlog of a site, in the part of its feeds that this node serves; `None` if it serves none. `sender` is the
/// address of a node that sends for a hub.
pub fn site_backlog<F: BacklogFacts>(
    facts: &F,
    line: SiteLine,
    sender: Option<&str>,
    counts: &mut Counts,
) -> Option<SiteBacklog> {
    let stands_by = facts.stands_by(&line.site);
    let line = counted_here(line, sender, stands_by == Some(true))?;
    let feeds = Filter::of_subscriptions(&subscriptions(&line)).into_iter();
    let lacking = feeds.filter_map(|(feed, filter)| {
        let log = facts.log(&feed)?;
        let look = Look {
            position: facts.position(&line.site, &feed),
            resends: line.resends.iter().filter(|it| it.feed == feed).collect(),
            left: facts.resends_left(&line),
            max_age_us: handling(&line).iter().find(|it| it.feed == feed).and_then(|it| it.max_age_us),
            is_connected: stands_by.is_some(),
            now: facts.now(),
            log: &*log,
            filter,
        };
        Some(look.lacking(counts).unwrap_or_else(|error| {
            facts.unreadable(&line.site, &feed, error);
            FeedBacklog::not_known(feed)
        }))
    });
    let feeds = lacking.collect();
    Some(SiteBacklog { site: line.site, feeds })
}

/// The part of a site that this node serves, if it serves any. A site with an LDM of its own sends its own requests,
/// and the position of a site that takes its feeds from another hub is not known here.
fn counted_here(line: SiteLine, sender: Option<&str>, stands_by: bool) -> Option<SiteLine> {
    let is_others = sender.is_some() && line.nodes.is_empty();
    let counts = line.active && line.kept_ldm.ldm_host.is_none() && !is_others && !stands_by;
    counts.then(|| line.served_at(sender.unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use downburst_model::{Epoch, RangeSet};

    use super::super::Positions;
    use super::super::testlog::TestLog;
    use super::*;

    /// A node with one feed of ten products.
    #[derive(Default)]
    struct Node {
        stands_by: Option<bool>,
        positions: Positions,
    }

    impl BacklogFacts for Node {
        type Log = TestLog;

        fn log(&self, feed: &FeedName) -> Option<Arc<TestLog>> {
            let mut log = TestLog::default();
            for _ in 0..10 {
                log.store("x");
            }
            (*feed == log.feed).then(|| Arc::new(log))
        }

        fn position(&self, site: &SiteName, feed: &FeedName) -> Option<Position> {
            self.positions.of(site, feed)
        }

        fn resends_left(&self, _: &SiteLine) -> BTreeMap<u64, ResendLeft> {
            BTreeMap::new()
        }

        fn stands_by(&self, _: &SiteName) -> Option<bool> {
            self.stands_by
        }

        fn now(&self) -> WallMicros {
            WallMicros(1_000_000_000)
        }

        fn unreadable(&self, _: &SiteName, _: &FeedName, error: Infallible) {
            match error {}
        }
    }

    impl Node {
        /// The site settled everything up to this sequence.
        fn settled(to: u64) -> Self {
            let mut node = Self::default();
            let mut settled = RangeSet::new();
            settled.insert(0, to);
            let feed = FeedName::parse("TEST").unwrap();
            node.positions.stands(&SiteName::parse("oslo").unwrap(), &feed, (Epoch(7), settled));
            node
        }
    }

    fn line(changes: serde_json::Value) -> SiteLine {
        let wish = |feed| serde_json::json!({"feed": feed, "pattern": ".*", "not_pattern": null});
        let mut line = serde_json::json!({"site": "oslo", "credentials": [], "active": true,
            "subscriptions": [wish("TEST"), wish("closed")]});
        line.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
        serde_json::from_value(line).unwrap()
    }

    fn counted(node: &Node, changes: serde_json::Value, sender: Option<&str>) -> Option<SiteBacklog> {
        let mut counts = Counts::default();
        counts.begin();
        site_backlog(node, line(changes), sender, &mut counts)
    }

    #[test]
    fn each_open_feed_of_the_site_is_counted() {
        let backlog = counted(&Node::settled(4), serde_json::json!({}), None).unwrap();
        let found = backlog.feeds.iter().map(|it| (it.feed.as_str(), it.known, it.products));
        assert_eq!(found.collect::<Vec<_>>(), [("TEST", true, 6)], "the other feed is not open here");
        assert_eq!(backlog.site.as_str(), "oslo");
    }

    #[test]
    fn a_site_that_is_served_elsewhere_or_asks_for_itself_is_not_counted() {
        let nothing = || serde_json::json!({});
        assert!(counted(&Node::default(), nothing(), None).is_some());
        assert!(counted(&Node::default(), serde_json::json!({"active": false}), None).is_none());
        assert!(counted(&Node::default(), serde_json::json!({"ldm_host": "ldm"}), None).is_none());
        let with_session = |stands_by| Node { stands_by: Some(stands_by), ..Node::default() };
        assert!(counted(&with_session(true), nothing(), None).is_none(), "another hub knows its position");
        assert!(counted(&with_session(false), nothing(), None).is_some());
    }

    #[test]
    fn a_sender_counts_the_feeds_that_it_was_assigned() {
        let nodes = |feed| serde_json::json!({"nodes": [{"address": "one:1", "feeds": [feed]}]});
        let feeds = |changes, sender| counted(&Node::settled(4), changes, sender).map(|it| it.feeds.len());
        assert_eq!(feeds(serde_json::json!({}), Some("one:1")), None, "nothing is assigned yet");
        assert_eq!(feeds(nodes("TEST"), Some("one:1")), Some(1));
        assert_eq!(feeds(nodes("TEST"), Some("two:1")), Some(0));
        assert_eq!(feeds(nodes("closed"), Some("one:1")), Some(0));
        assert_eq!(feeds(nodes("TEST"), None), Some(0), "the hub's own node leaves it to the sender");
    }
}
