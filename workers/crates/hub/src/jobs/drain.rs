//! The wait until every connected site has all its products.
use std::collections::{BTreeMap, BTreeSet};

use downburst_model::{FeedName, Micros, Sequence};
use serde::Serialize;

use crate::sites::SiteLine;

/// A wait with a time limit.
#[derive(Clone, Copy, Debug)]
pub struct Drain {
    give_up: Micros,
}

/// The next step of a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DrainStep {
    /// The wait is over.
    Over(Drained),
    /// The sites have to be examined again after this time.
    LookAfter(Micros),
}

/// The result of a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Drained {
    /// True if every connected site has all its products.
    pub drained: bool,
    /// The number of pairs of site and feed that are behind.
    pub behind: usize,
}

impl Drain {
    /// A wait of at most so many seconds.
    pub fn begin(now: Micros, seconds: f64) -> Self {
        // The cast saturates: less than nothing is nothing.
        let longest = Micros((seconds.clamp(0.0, LONGEST_SECONDS) * 1e6) as u64);
        Self { give_up: now.plus(longest) }
    }

    /// The next step, with so many pairs of site and feed that are behind.
    pub fn look(&self, now: Micros, behind: usize) -> DrainStep {
        if behind == 0 || now >= self.give_up {
            return DrainStep::Over(Drained { drained: behind == 0, behind });
        }
        DrainStep::LookAfter(LOOK_INTERVAL)
    }
}

/// The number of open feeds in which a site has not settled everything up to the log's head. `line` is the site's
/// part at this node.
pub fn behind(
    line: &SiteLine,
    frontiers: &BTreeMap<FeedName, (Sequence, u64)>,
    head: impl Fn(&FeedName) -> Option<Sequence>,
) -> usize {
    let subscribed: BTreeSet<&FeedName> = line.subscriptions.iter().map(|item| &item.feed).collect();
    let open = subscribed.into_iter().filter_map(|feed| Some((feed, head(feed)?)));
    open.filter(|(feed, head)| frontiers.get(*feed).is_none_or(|(settled_to, _)| settled_to < head)).count()
}

const LONGEST_SECONDS: f64 = 86_400.0;
const LOOK_INTERVAL: Micros = Micros::from_millis(50);

#[cfg(test)]
mod tests {
    use super::*;

    fn feed(name: &str) -> FeedName {
        FeedName::parse(name).unwrap()
    }

    fn subscribed(feeds: &[&str]) -> SiteLine {
        let wishes: Vec<_> = feeds
            .iter()
            .map(|feed| serde_json::json!({"feed": feed, "pattern": ".*", "not_pattern": null}))
            .collect();
        let line = serde_json::json!({
            "site": "oslo", "credentials": [], "subscriptions": wishes, "active": true,
        });
        serde_json::from_value(line).unwrap()
    }

    #[test]
    fn a_wait_ends_with_the_last_site_or_with_its_time() {
        let drain = Drain::begin(Micros::from_secs(10), 5.0);
        assert_eq!(drain.look(Micros::from_secs(11), 2), DrainStep::LookAfter(LOOK_INTERVAL));
        let over = |drained, behind| DrainStep::Over(Drained { drained, behind });
        assert_eq!(drain.look(Micros::from_secs(12), 0), over(true, 0));
        assert_eq!(drain.look(Micros::from_secs(15), 2), over(false, 2));
    }

    #[test]
    fn absurd_times_are_bounded() {
        let now = Micros::from_secs(1);
        assert_eq!(Drain::begin(now, -1e300).give_up, now);
        assert_eq!(Drain::begin(now, f64::NAN).give_up, now);
        assert_eq!(Drain::begin(now, f64::INFINITY).give_up, now.plus(Micros::from_secs(86_400)));
    }

    #[test]
    fn a_site_is_behind_in_the_feeds_that_it_has_not_settled() {
        let line = subscribed(&["A", "A", "B", "C", "CLOSED"]);
        let heads = BTreeMap::from([(feed("A"), 5), (feed("B"), 5), (feed("C"), 0), (feed("D"), 9)]);
        let head = |feed: &FeedName| heads.get(feed).copied().map(Sequence);
        let frontiers = |b| BTreeMap::from([(feed("B"), (Sequence(b), 0)), (feed("C"), (Sequence(0), 0))]);
        assert_eq!(behind(&line, &frontiers(4), head), 2, "A has no frontier yet");
        assert_eq!(behind(&line, &frontiers(5), head), 1);
        assert_eq!(behind(&subscribed(&[]), &frontiers(0), head), 0);
    }
}
