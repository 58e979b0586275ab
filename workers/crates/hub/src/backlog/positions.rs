//! The positions of sites in the feeds' logs, as last reported by the sites or as remembered by the agent.
use std::collections::BTreeMap;

use downburst_model::{Epoch, FeedName, RangeSet, SiteName};

use crate::sites::SiteLine;

/// The position of each site in its feeds.
#[derive(Default)]
pub struct Positions(BTreeMap<SiteName, BTreeMap<FeedName, Position>>);

/// A site's last reported position in a feed.
#[derive(Clone, Debug)]
pub struct Position {
    /// The epoch as text, in the agent's form.
    pub(super) epoch: String,
    pub(super) settled: RangeSet,
    /// True if the agent remembered it from an earlier run of the node.
    is_old: bool,
}

impl Position {
    /// The settled numbers, if the position is in this log.
    pub fn in_epoch(&self, epoch: Epoch) -> Option<&RangeSet> {
        (self.epoch == epoch.0.to_string()).then_some(&self.settled)
    }
}

impl Positions {
    /// Records a position that a site reported, or that was sent to it.
    pub fn stands(&mut self, site: &SiteName, feed: &FeedName, (epoch, settled): (Epoch, RangeSet)) {
        let position = Position { epoch: epoch.0.to_string(), settled, is_old: false };
        self.0.entry(site.clone()).or_default().insert(feed.clone(), position);
    }

    /// Takes positions from the agent, for sites and feeds without a report in this run of the node.
    pub fn stood(&mut self, lines: &[SiteLine], epoch_of: impl Fn(&FeedName) -> Option<Epoch>) {
        for line in lines.iter().filter(|line| !line.positions.is_empty()) {
            let known = self.0.entry(line.site.clone()).or_default();
            for told in &line.positions {
                let is_of_log = epoch_of(&told.feed).is_some_and(|epoch| epoch.0.to_string() == told.epoch);
                let mut settled = RangeSet::new();
                settled.insert(0, told.settled_to.0);
                let position = Position { epoch: told.epoch.clone(), settled, is_old: true };
                match known.get(&told.feed) {
                    None => drop(known.insert(told.feed.clone(), position)),
                    // The site had positions in several logs: that in the present log counts.
                    Some(other) if other.is_old && is_of_log => {
                        drop(known.insert(told.feed.clone(), position))
                    }
                    Some(_) => {}
                }
            }
        }
    }

    /// A site's position in a feed; `None`: it never received the feed.
    pub fn of(&self, site: &SiteName, feed: &FeedName) -> Option<Position> {
        self.0.get(site)?.get(feed).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(epoch: &str, settled_to: u64) -> SiteLine {
        serde_json::from_value(serde_json::json!({
            "site": "oslo", "credentials": [], "subscriptions": [], "active": true,
            "positions": [{"feed": "A", "epoch": epoch, "settled_to": settled_to}],
        }))
        .unwrap()
    }

    #[test]
    fn the_agents_memory_counts_until_the_site_says_more() {
        let (site, feed) = (SiteName::parse("oslo").unwrap(), FeedName::parse("A").unwrap());
        let mut positions = Positions::default();
        let settled =
            |positions: &Positions| positions.of(&site, &feed).map(|it| (it.epoch, it.settled.last()));
        let epoch_of = |_: &FeedName| Some(Epoch(8));
        assert_eq!(settled(&positions), None);
        positions.stood(&[line("7", 5)], epoch_of);
        assert_eq!(settled(&positions), Some(("7".to_owned(), Some(5))));
        positions.stood(&[line("8", 3)], epoch_of);
        assert_eq!(settled(&positions), Some(("8".to_owned(), Some(3))), "it stood in several logs");
        positions.stood(&[line("7", 9)], epoch_of);
        assert_eq!(settled(&positions), Some(("8".to_owned(), Some(3))));
        positions.stands(&site, &feed, (Epoch(8), [(0, 4)].into_iter().collect()));
        positions.stood(&[line("8", 9)], epoch_of);
        assert_eq!(settled(&positions), Some(("8".to_owned(), Some(4))), "it said so itself");
    }
}
