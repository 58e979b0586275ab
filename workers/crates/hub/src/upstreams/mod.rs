//! A hub as a site of other hubs: the products of an upstream that go into this hub's own feeds.
mod lines;

use std::collections::{BTreeMap, BTreeSet};

use downburst_model::{Class, FeedName, Hops, HubName, ProductInfo};
use serde::Serialize;

pub use lines::UpstreamLine;

/// The feeds to take from an upstream; none named: all that exist here.
#[derive(Clone, Debug, Default)]
pub struct WantedFeeds(BTreeSet<FeedName>);

/// The intake from one upstream.
#[derive(Debug)]
pub struct UpstreamIntake {
    /// The operator's name for the upstream.
    upstream: String,
    own_name: Option<HubName>,
    connected: bool,
    /// The upstream's name for itself: the hop of its products.
    name: Option<HubName>,
    reason: Option<String>,
    /// Feeds for which a complaint was logged.
    complained: BTreeSet<FeedName>,
    passed_over: u64,
    looped: u64,
}

/// A report of the intake to the agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UpstreamReport {
    /// The state of the connection changed.
    State {
        /// The new state.
        state: &'static str,
        /// The upstream's name for itself.
        hub: Option<String>,
        /// The reason, for people.
        reason: Option<String>,
    },
    /// A problem for the operator.
    Fault {
        /// One sentence.
        sentence: String,
        /// The feed.
        feed: Option<FeedName>,
    },
}

/// The decision on a product of an upstream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Admission {
    /// The class and the hops of an admitted product.
    pub admitted: Option<(Class, Option<Hops>)>,
    /// The reason why the feed's products are skipped, once per connection.
    pub complaint: Option<UpstreamReport>,
}

/// The state of an intake.
#[derive(Debug, Serialize)]
pub struct UpstreamStatus<'a> {
    upstream: &'a str,
    connected: bool,
    hub: Option<&'a HubName>,
    reason: Option<&'a str>,
    stored: u64,
    looped: u64,
    passed_over: u64,
}

impl WantedFeeds {
    /// The feeds that the agent's line names.
    pub fn of(line: &UpstreamLine) -> Self {
        Self(line.feeds.iter().cloned().collect())
    }

    /// True if the feed is to be taken.
    pub fn takes(&self, feed: &FeedName) -> bool {
        self.0.is_empty() || self.0.contains(feed)
    }
}

impl UpstreamIntake {
    /// An intake of the hub of this name, not yet connected.
    pub fn new(upstream: &str, own_name: &str) -> Self {
        Self {
            upstream: upstream.to_owned(),
            own_name: HubName::parse(own_name).ok(),
            connected: false,
            name: None,
            reason: None,
            complained: BTreeSet::new(),
            passed_over: 0,
            looped: 0,
        }
    }

    /// The connection serves, to the hub of this name.
    pub fn is_well(&mut self, name: &str) -> Vec<UpstreamReport> {
        (self.connected, self.reason) = (true, None);
        self.complained.clear();
        let state = UpstreamReport::State { state: "connected", hub: Some(name.to_owned()), reason: None };
        let is_namesake = self.own_name.as_ref().is_some_and(|own| own.as_str() == name);
        let namesake = is_namesake.then(|| {
            fault(format!(
                "upstream {} has the same name as this hub, {name:?}, so that loops could not be detected: its \
                 products are ignored; give this hub another name (setting name)",
                self.upstream
            ))
        });
        std::iter::once(state).chain(namesake).collect()
    }

    /// The connection ended. Only a change is reported: a hub that is away for a day is called thousands of times.
    pub fn is_away(&mut self, sentence: &str) -> Option<UpstreamReport> {
        self.ended(sentence).then(|| closed("closed", sentence))
    }

    /// The upstream refused this hub.
    pub fn is_refused(&mut self, sentence: &str) -> [UpstreamReport; 2] {
        self.ended(sentence);
        let advice = format!(
            "upstream {} refused this hub: {sentence} (then: downburst upstreams add {} --token ...)",
            self.upstream, self.upstream
        );
        [closed("refused", sentence), fault(advice)]
    }

    /// Notes the upstream's name; a name that can't be a hop is replaced by the operator's name for it.
    pub fn hub_is(&mut self, name: &str) {
        self.name = HubName::parse(name).or_else(|_| HubName::parse(&self.upstream)).ok();
    }

    /// Decides on a product; `class` is that of its feed, if this hub takes it.
    pub fn admit(&mut self, product: &ProductInfo, class: Option<Class>) -> Admission {
        // This hub puts in its own heartbeats: an upstream's heartbeats end at this hub, its site.
        if product.id.is_heartbeat() {
            return Admission::default();
        }
        let Some(class) = class else {
            self.passed_over += 1;
            return self.complain(&product.key.feed, not_taken);
        };
        match self.way(product) {
            Some(way) => Admission { admitted: Some((class, Some(way))), complaint: None },
            None => {
                self.looped += 1;
                self.complain(&product.key.feed, in_a_circle)
            }
        }
    }

    /// The state, with the number of stored products.
    pub fn status(&self, stored: u64) -> UpstreamStatus<'_> {
        UpstreamStatus {
            upstream: &self.upstream,
            connected: self.connected,
            hub: self.name.as_ref(),
            reason: self.reason.as_deref(),
            stored,
            looped: self.looped,
            passed_over: self.passed_over,
        }
    }

    /// True if the connection served until now.
    fn ended(&mut self, sentence: &str) -> bool {
        self.reason = Some(sentence.to_owned());
        std::mem::replace(&mut self.connected, false)
    }

    /// The hops of a product that arrived from this upstream; `None` if it has been here before.
    fn way(&self, product: &ProductInfo) -> Option<Hops> {
        let came_by = self.name.clone()?;
        let own = self.own_name.as_ref()?;
        let looped = came_by == *own || product.hops.as_ref().is_some_and(|hops| hops.contains(own));
        Hops::through(product.hops.as_ref(), came_by).filter(|_| !looped)
    }

    /// Reports, once per connection and feed, why its products are skipped.
    fn complain(&mut self, feed: &FeedName, sentence: fn(&str, &FeedName) -> String) -> Admission {
        let is_news = !self.complained.contains(feed) && self.complained.insert(feed.clone());
        let complaint = is_news.then(|| UpstreamReport::Fault {
            sentence: sentence(&self.upstream, feed),
            feed: Some(feed.clone()),
        });
        Admission { admitted: None, complaint }
    }
}

/// The known upstreams that are not wanted as they are: they end before the wanted ones begin.
pub fn outdated<'a>(
    known: impl Iterator<Item = &'a UpstreamLine>,
    wanted: &BTreeMap<String, UpstreamLine>,
) -> Vec<String> {
    let gone = known.filter(|line| wanted.get(&line.upstream) != Some(*line));
    gone.map(|line| line.upstream.clone()).collect()
}

/// The refusal of an upstream that is this hub.
pub fn own_upstream(upstream: &str) -> String {
    format!("upstream {upstream} is this hub itself, by its token; use a token of the other hub")
}

fn closed(state: &'static str, sentence: &str) -> UpstreamReport {
    UpstreamReport::State { state, hub: None, reason: Some(sentence.to_owned()) }
}

fn fault(sentence: String) -> UpstreamReport {
    UpstreamReport::Fault { sentence, feed: None }
}

fn not_taken(upstream: &str, feed: &FeedName) -> String {
    format!(
        "products of feed {feed} from upstream {upstream} are ignored, because this hub does not take that feed; \
         create it (downburst feeds add {feed}), name it among the upstream's feeds, or take it off this hub's \
         subscriptions there"
    )
}

fn in_a_circle(upstream: &str, feed: &FeedName) -> String {
    format!(
        "upstream {upstream} sends products of feed {feed} that passed this hub before: hubs feed each other in a \
         circle; remove the feed from one of the subscriptions, or give hubs of the same name different names"
    )
}

#[cfg(test)]
mod tests;
