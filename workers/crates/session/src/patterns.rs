use std::collections::BTreeMap;
use std::sync::Arc;

use downburst_model::{FeedName, HEARTBEAT_PREFIX, IdFilter, Pattern, is_heartbeat};

use crate::Subscription;

/// A site's subscriptions, compiled.
#[derive(Clone, Debug, Default)]
pub(crate) struct Patterns {
    feeds: BTreeMap<FeedName, Arc<Filter>>,
}

/// A site's wishes for one feed, and whether it takes trains and heartbeats. Filters are equal when they want
/// the same for the same reasons: a match and encoding for one site serves every other with an equal filter.
#[derive(Debug)]
pub struct Filter {
    key: FilterKey,
    wishes: Vec<Wish>,
}

#[derive(Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct FilterKey {
    trains: Trains,
    /// Heartbeats are wanted whatever the patterns say, or not at all.
    heartbeats: bool,
    /// Patterns, what they leave out, and what the site may take at all; sorted.
    texts: Vec<Text>,
}

/// Whether small products travel together, and what is said of them then.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Trains {
    /// Each goes by itself.
    #[default]
    None,
    /// Without what LDM said.
    Plain,
    /// With what LDM said.
    Stamped,
}

type Text = (String, Option<String>, Option<Vec<IdFilter>>);

/// A pattern, what it leaves out, and what the site may take at all.
#[derive(Debug)]
pub(crate) struct Wish {
    pattern: Pattern,
    not_pattern: Option<Pattern>,
    within: Option<Vec<Wish>>,
}

impl Patterns {
    /// Compiles the set. A pattern that does not compile matches nothing: the hub refuses those before they are stored.
    pub(crate) fn compile(
        subscriptions: &[Subscription],
        heartbeats: bool,
        trains: impl Fn(&FeedName) -> Trains,
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

    /// What the site wants of the feed.
    pub(crate) fn filter(&self, feed: &FeedName) -> Option<&Arc<Filter>> {
        self.feeds.get(feed)
    }

    /// True if a subscription wants the product with this id.
    pub(crate) fn want(&self, feed: &FeedName, id: &str) -> bool {
        self.feeds.get(feed).is_some_and(|filter| filter.wants(id))
    }
}

impl Filter {
    /// What a site's subscriptions want of each feed, heartbeats left out: for who counts products and sends none.
    pub fn of_subscriptions(subscriptions: &[Subscription]) -> BTreeMap<FeedName, Arc<Self>> {
        Patterns::compile(subscriptions, false, |_| Trains::None).feeds
    }

    /// True if the product with this id is wanted.
    pub fn wants(&self, id: &str) -> bool {
        if is_heartbeat(id) {
            return self.key.heartbeats;
        }
        self.wishes.iter().any(|wish| wish.matches(id))
    }

    /// True if the site may not take all that it asks for.
    pub(crate) fn is_limited(&self) -> bool {
        self.key.texts.iter().any(|(.., within)| within.is_some())
    }

    /// How small products travel.
    pub(crate) fn trains(&self) -> Trains {
        self.key.trains
    }

    fn compile(wishes: Vec<Subscription>, trains: Trains, heartbeats: bool) -> Self {
        let mut texts: Vec<Text> =
            wishes.into_iter().map(|wish| (wish.pattern, wish.not_pattern, wish.within)).collect();
        texts.sort_unstable();
        texts.dedup();
        let wishes = texts.iter().filter_map(|(pattern, not_pattern, within)| {
            Some(Wish::compile(pattern, not_pattern.as_deref())?.within(within.as_deref()))
        });
        Self { wishes: wishes.collect(), key: FilterKey { trains, heartbeats, texts } }
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

impl Wish {
    pub(crate) fn compile(pattern: &str, not_pattern: Option<&str>) -> Option<Self> {
        let pattern = Pattern::parse(pattern).ok()?;
        let not_pattern = not_pattern.map(Pattern::parse).transpose().ok()?;
        Some(Self { pattern, not_pattern, within: None })
    }

    /// The same of what one of the limits grants; one that does not compile grants nothing.
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

/// The same subscriptions for a site that does not know heartbeats: a multicast leg shows them to it as well.
pub(crate) fn without_heartbeats(subscriptions: &[Subscription]) -> Vec<Subscription> {
    let without = |it: &Subscription| {
        let not_pattern = match &it.not_pattern {
            Some(known) => format!("({known})|^{HEARTBEAT_PREFIX}"),
            None => format!("^{HEARTBEAT_PREFIX}"),
        };
        Subscription { not_pattern: Some(not_pattern), ..it.clone() }
    };
    subscriptions.iter().map(without).collect()
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

    fn wants(wishes: &[Subscription], heartbeats: bool, id: &str) -> bool {
        let patterns = Patterns::compile(wishes, heartbeats, |_| Trains::Plain);
        patterns.want(&FeedName::parse("NGRID").unwrap(), id)
    }

    #[test]
    fn heartbeats_are_wanted_whatever_the_patterns_say_or_not_at_all() {
        for wish in [wish("^SAUS", None), wish(".*", Some("beat"))] {
            assert!(wants(std::slice::from_ref(&wish), true, BEAT), "{wish:?}");
            assert!(!wants(&[wish], false, BEAT));
        }
        let other = FeedName::parse("OTHER").unwrap();
        assert!(!Patterns::compile(&[wish(".*", None)], true, |_| Trains::Plain).want(&other, BEAT));
    }

    #[test]
    fn filters_that_differ_in_heartbeats_are_different() {
        let filter = |heartbeats| {
            let patterns = Patterns::compile(&[wish(".*", None)], heartbeats, |_| Trains::Plain);
            Arc::clone(patterns.filter(&FeedName::parse("NGRID").unwrap()).unwrap())
        };
        assert!(filter(true) != filter(false) && filter(true) == filter(true));
    }

    #[test]
    fn a_site_that_does_not_know_them_is_told_to_leave_them_out() {
        for given in [wish(".*", None), wish(".*", Some("^a|b$"))] {
            let [told] = without_heartbeats(std::slice::from_ref(&given)).try_into().unwrap();
            let plain = Wish::compile(&told.pattern, told.not_pattern.as_deref()).unwrap();
            let before = Wish::compile(&given.pattern, given.not_pattern.as_deref()).unwrap();
            assert!(before.matches(BEAT) && !plain.matches(BEAT));
            for id in ["a", "xa", "xb", "bx", "beat"] {
                assert_eq!(plain.matches(id), before.matches(id), "{id}");
            }
        }
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
