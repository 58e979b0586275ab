//! The order of each feed's products, as requested by the connections to hubs.
use std::collections::BTreeMap;

use downburst_model::{FeedName, Micros};
use downburst_session::Missing;

use super::local::ShowOrder;

/// The feeds whose products are to be shown in order, with their missing products.
#[derive(Debug, Default)]
pub struct OrderRequests {
    /// The feeds with an order, with the time for which a missing product holds back later ones.
    holds: BTreeMap<FeedName, Micros>,
    missing: BTreeMap<FeedName, Missing>,
}

impl OrderRequests {
    /// Takes a request of one connection.
    pub fn take(&mut self, order: ShowOrder) {
        match order {
            ShowOrder::Feeds { only, mut holds } => {
                if let Some(only) = only {
                    let others = self.holds.iter().filter(|(feed, _)| !only.contains(*feed));
                    holds.extend(others.map(|(feed, hold)| (feed.clone(), *hold)));
                }
                self.missing.retain(|feed, _| holds.contains_key(feed));
                self.holds = holds;
            }
            ShowOrder::Missing(feed, missing) => {
                self.missing.insert(feed, missing);
            }
        }
    }

    /// The time for which a missing product of a feed holds back later ones, `None` if it has no order;
    /// and the missing products.
    pub fn of(&self, feed: &FeedName) -> (Option<Micros>, Missing) {
        (self.holds.get(feed).copied(), self.missing.get(feed).cloned().unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use downburst_model::Sequence;

    use super::*;

    fn feed(name: &str) -> FeedName {
        FeedName::parse(name).unwrap()
    }

    fn holds(names: &[&str]) -> BTreeMap<FeedName, Micros> {
        names.iter().map(|name| (feed(name), Micros::from_secs(2))).collect()
    }

    #[test]
    fn a_connection_decides_about_its_own_feeds_alone() {
        let mut requests = OrderRequests::default();
        requests.take(ShowOrder::Feeds { only: None, holds: holds(&["A", "B"]) });
        let only = Some([feed("A"), feed("C")].into());
        requests.take(ShowOrder::Feeds { only, holds: holds(&["C"]) });
        let held = ["A", "B", "C"].map(|name| requests.of(&feed(name)).0.is_some());
        assert_eq!(held, [false, true, true]);
    }

    #[test]
    fn what_is_missing_counts_as_long_as_the_feed_has_an_order() {
        let mut requests = OrderRequests::default();
        requests.take(ShowOrder::Feeds { only: None, holds: holds(&["A"]) });
        let missing = Missing { to: Sequence(9), ..Missing::default() };
        requests.take(ShowOrder::Missing(feed("A"), missing.clone()));
        requests.take(ShowOrder::Feeds { only: None, holds: holds(&["A", "B"]) });
        assert_eq!(requests.of(&feed("A")).1, missing);
        requests.take(ShowOrder::Feeds { only: None, holds: holds(&["B"]) });
        assert_eq!(requests.of(&feed("A")), (None, Missing::default()));
    }
}
