use std::collections::BTreeMap;
use std::sync::Arc;

use downburst_model::{FeedName, IdFilter, Pattern, is_heartbeat};

use crate::Subscription;

/// A site's subscriptions, compiled.
#[derive(Clone, Debug, Default)]
pub(crate) struct Patterns {
    feeds: BTreeMap<FeedName, Arc<Filter>>,
}

/// A site's selection from one feed, and its use of trains and heartbeats. Filters are equal if their patterns
/// and options are equal: a match and encoding for one site serves every other with an equal filter.
#[derive(Debug)]
pub struct Filter {
    key: FilterKey,
    selections: Vec<Selection>,
}

#[derive(Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct FilterKey {
    /// Small products are sent together.
    trains: bool,
    /// True if heartbeats are wanted, independently of the patterns; otherwise none are.
    heartbeats: bool,
    /// Patterns, their exclusions and the site's rights; sorted.
    texts: Vec<Text>,
}

type Text = (String, Option<String>, Option<Vec<IdFilter>>);

/// A pattern, its exclusions and the site's rights.
#[derive(Debug)]
pub(crate) struct Selection {
    pattern: Pattern,
    not_pattern: Option<Pattern>,
    within: Option<Vec<Selection>>,
}

impl Patterns {
    /// Compiles the set. A pattern that does not compile matches nothing: the hub refuses such patterns before
    /// they are stored.
    pub(crate) fn compile(
        subscriptions: &[Subscription],
        heartbeats: bool,
        trains: impl Fn(&FeedName) -> bool,
    ) -> Self {
        let mut texts: BTreeMap<FeedName, Vec<Subscription>> = BTreeMap::new();
        for wish in subscriptions {
            texts.entry(wish.feed.clone()).or_default().push(wish.clone());
        }
        let feeds = texts.into_iter().map(|(feed, texts)| {
            let filter = Filter::compile(texts, trains(&feed), heartbeats);
            (feed, Arc::new(filter))
        });
        Self { feeds: feeds.collect() }
    }

    /// True if the site subscribes to anything of the feed.
    pub(crate) fn has(&self, feed: &FeedName) -> bool {
        self.feeds.contains_key(feed)
    }

    /// From now on, small products of the feed are sent together, or not.
    pub(crate) fn set_trains(&mut self, feed: &FeedName, trains: bool) {
        if let Some(filter) = self.feeds.get_mut(feed).filter(|filter| filter.trains() != trains) {
            *filter = Arc::new(Filter::of_texts(filter.key.texts.clone(), trains, filter.key.heartbeats));
        }
    }

    /// The site's filter for the feed.
    pub(crate) fn filter(&self, feed: &FeedName) -> Option<&Arc<Filter>> {
        self.feeds.get(feed)
    }

    /// True if a subscription wants the product with this id.
    pub(crate) fn want(&self, feed: &FeedName, id: &str) -> bool {
        self.feeds.get(feed).is_some_and(|filter| filter.wants(id))
    }
}

impl Filter {
    /// The filter of a site's subscriptions for each feed, without heartbeats: for callers that count products
    /// and send none.
    pub fn of_subscriptions(subscriptions: &[Subscription]) -> BTreeMap<FeedName, Arc<Self>> {
        Patterns::compile(subscriptions, false, |_| false).feeds
    }

    /// True if the product with this id is wanted.
    pub fn wants(&self, id: &str) -> bool {
        if is_heartbeat(id) {
            return self.key.heartbeats;
        }
        self.selections.iter().any(|wish| wish.matches(id))
    }

    /// True if small products are sent together.
    pub(crate) fn trains(&self) -> bool {
        self.key.trains
    }

    fn compile(selections: Vec<Subscription>, trains: bool, heartbeats: bool) -> Self {
        let mut texts: Vec<Text> =
            selections.into_iter().map(|wish| (wish.pattern, wish.not_pattern, wish.within)).collect();
        texts.sort_unstable();
        texts.dedup();
        Self::of_texts(texts, trains, heartbeats)
    }

    fn of_texts(texts: Vec<Text>, trains: bool, heartbeats: bool) -> Self {
        let selections = texts.iter().filter_map(|(pattern, not_pattern, within)| {
            Some(Selection::compile(pattern, not_pattern.as_deref())?.within(within.as_deref()))
        });
        Self { selections: selections.collect(), key: FilterKey { trains, heartbeats, texts } }
    }
}

impl PartialEq for Filter {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl Eq for Filter {}

impl PartialOrd for Filter {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Filter {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key.cmp(&other.key)
    }
}

impl Selection {
    pub(crate) fn compile(pattern: &str, not_pattern: Option<&str>) -> Option<Self> {
        let pattern = Pattern::parse(pattern).ok()?;
        let not_pattern = not_pattern.map(Pattern::parse).transpose().ok()?;
        Some(Self { pattern, not_pattern, within: None })
    }

    /// The same selection, restricted to the products that one of the limits grants; a limit that does not
    /// compile grants nothing.
    pub(crate) fn within(self, limits: Option<&[IdFilter]>) -> Self {
        let granted = |limit: &IdFilter| Self::compile(&limit.pattern, limit.not_pattern.as_deref());
        Self { within: limits.map(|limits| limits.iter().filter_map(granted).collect()), ..self }
    }

    pub(crate) fn matches(&self, id: &str) -> bool {
        self.pattern.matches(id)
            && !self.not_pattern.as_ref().is_some_and(|pattern| pattern.matches(id))
            && self.within.as_ref().is_none_or(|limits| limits.iter().any(|limit| limit.matches(id)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEAT: &str = "downburst:heartbeat:1";

    fn wish(pattern: &str, not_pattern: Option<&str>) -> Subscription {
        let feed = FeedName::parse("NGRID").unwrap();
        Subscription {
            feed,
            pattern: pattern.to_owned(),
            not_pattern: not_pattern.map(str::to_owned),
            within: None,
        }
    }

    fn wants(selections: &[Subscription], heartbeats: bool, id: &str) -> bool {
        let patterns = Patterns::compile(selections, heartbeats, |_| true);
        patterns.want(&FeedName::parse("NGRID").unwrap(), id)
    }

    #[test]
    fn heartbeats_are_wanted_whatever_the_patterns_say_or_not_at_all() {
        for wish in [wish("^SAUS", None), wish(".*", Some("beat"))] {
            assert!(wants(std::slice::from_ref(&wish), true, BEAT), "{wish:?}");
            assert!(!wants(&[wish], false, BEAT));
        }
        let other = FeedName::parse("OTHER").unwrap();
        assert!(!Patterns::compile(&[wish(".*", None)], true, |_| true).want(&other, BEAT));
    }

    #[test]
    fn filters_that_differ_in_heartbeats_are_different() {
        let filter = |heartbeats| {
            let patterns = Patterns::compile(&[wish(".*", None)], heartbeats, |_| true);
            Arc::clone(patterns.filter(&FeedName::parse("NGRID").unwrap()).unwrap())
        };
        assert!(filter(true) != filter(false) && filter(true) == filter(true));
    }

    #[test]
    fn what_the_site_may_not_take_is_not_wanted_whatever_it_asks_for() {
        let limit = |pattern: &str, not_pattern: Option<&str>| IdFilter {
            pattern: pattern.to_owned(),
            not_pattern: not_pattern.map(str::to_owned),
        };
        let within = Some(vec![limit("^YZ", Some("TEST")), limit("^SA", None)]);
        let limited = |pattern: &str| Subscription { within: within.clone(), ..wish(pattern, Some("9$")) };
        for (id, wanted) in
            [("YZ 1", true), ("SA TEST", true), ("YZ TEST", false), ("XX 1", false), ("YZ 9", false)]
        {
            assert_eq!(wants(&[limited(".*")], true, id), wanted, "{id}");
        }
        assert!(!wants(&[limited("^S")], true, "YZ 1") && wants(&[limited("^S")], true, BEAT));
        let nothing = Subscription { within: Some(vec![limit("(", None)]), ..wish(".*", None) };
        assert!(!wants(&[nothing], true, "YZ 1"), "a limit that can't be read grants nothing");
    }
}
