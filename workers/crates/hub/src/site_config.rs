//! A site's configuration, converted from the agent's lines to the session's types.
use std::collections::BTreeMap;

use downburst_model::FeedName;
use downburst_session::{FeedHandling, NodeFeeds, Nodes, SiblingTerms, Subscription};

use crate::sites::{SiteLine, SubscriptionLine};

/// The nodes of the hub that serve a site.
pub fn nodes(line: &SiteLine) -> Nodes {
    let items =
        line.nodes.iter().map(|node| NodeFeeds { address: node.address.clone(), feeds: node.feeds.clone() });
    Nodes { version: line.nodes_version, items: items.collect() }
}

/// The chains of relays by which a site is to come.
pub fn ways(line: &SiteLine) -> Vec<String> {
    line.via.clone()
}

/// The terms of a site's exchange with siblings.
pub(crate) fn sibling_terms(line: &SiteLine) -> SiblingTerms {
    line.rights.siblings.as_ref().map_or_else(SiblingTerms::default, |siblings| SiblingTerms {
        on: true,
        upload_bytes_per_second: siblings.upload_bytes_per_second,
        upload_bytes_per_day: siblings.upload_bytes_per_day,
    })
}

/// A site's subscriptions.
pub fn subscriptions(line: &SiteLine) -> Vec<Subscription> {
    line.subscriptions
        .iter()
        .map(|item| Subscription {
            feed: item.feed.clone(),
            pattern: item.pattern.clone(),
            not_pattern: item.not_pattern.clone(),
            within: item.within.clone(),
        })
        .collect()
}

/// The handling of a site's feeds: the longest hold and the longest age among a feed's subscriptions apply, and a
/// subscription without an age removes the limit.
pub fn handling(line: &SiteLine) -> Vec<FeedHandling> {
    let mut feeds: BTreeMap<&FeedName, Vec<&SubscriptionLine>> = BTreeMap::new();
    for item in &line.subscriptions {
        feeds.entry(&item.feed).or_default().push(item);
    }
    let handled = feeds.into_iter().map(|(feed, items)| FeedHandling {
        feed: feed.clone(),
        hold_us: items.iter().filter_map(|item| item.hold_us).max(),
        max_age_us: items.iter().try_fold(0, |longest, item| Some(item.max_age_us?.max(longest))),
        // The session adds it: it is a setting of the feed.
        deadline_us: None,
    });
    handled.filter(|it| it.hold_us.is_some() || it.max_age_us.is_some()).collect()
}
