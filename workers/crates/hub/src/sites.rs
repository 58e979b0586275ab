//! What the agent tells of sites.
use std::collections::BTreeSet;

use downburst_model::{FeedName, IdFilter, Sequence, SiteName, WallMicros};
use serde::Deserialize;

/// A site, as its operator set it up.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct SiteLine {
    /// Its name.
    pub site: SiteName,
    /// What it may prove itself with.
    pub credentials: Vec<CredentialLine>,
    /// The feeds it may have; `*`: all.
    #[serde(default = "all_feeds")]
    pub allow: Vec<String>,
    /// What of them it may have; of a feed that is not named here all.
    #[serde(default)]
    pub limits: Vec<LimitLine>,
    /// What it gets.
    pub subscriptions: Vec<SubscriptionLine>,
    /// What it gets once more.
    #[serde(default)]
    pub resends: Vec<ResendLine>,
    /// The interface it listens to multicast on; empty: the one that reaches the hub.
    #[serde(default)]
    pub interface: String,
    /// False: may not connect.
    pub active: bool,
    /// How many data connections it gets; absent: as many as help.
    #[serde(default)]
    pub data_connections: Option<usize>,
    /// What its access takes, in bits per second, if that is known.
    #[serde(default)]
    pub access_rate_bps: Option<u64>,
    /// The site's limit in each hour of the day (UTC), in bits per second; 0: as much as its access takes.
    /// Empty: the same for all.
    #[serde(default)]
    pub ceiling_bps_by_hour: Vec<u64>,
    /// A site that keeps its LDM: matches its name, in lower case, or its address. Its subscriptions are the
    /// feeds that it may request.
    #[serde(default)]
    pub ldm_host: Option<String>,
    /// Where several sites know a host, the lower one decides.
    #[serde(default)]
    pub ldm_order: i64,
    /// The nodes of the hub that serve it, each with its feeds; empty: the hub's own node serves all.
    #[serde(default)]
    pub nodes: Vec<NodeLine>,
    /// Rises whenever feeds or sites are given to other nodes.
    #[serde(default)]
    pub nodes_version: u64,
    /// Where it stood when the agent was last told.
    #[serde(default)]
    pub positions: Vec<PositionLine>,
}

/// How far a site was with a feed.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct PositionLine {
    /// The feed.
    pub feed: FeedName,
    /// The life of its log, as decimal text.
    pub epoch: String,
    /// Everything up to here was settled.
    pub settled_to: Sequence,
}

/// One of the nodes that serve a site.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct NodeLine {
    /// Where the site reaches it.
    pub address: String,
    /// What it serves of the site's feeds.
    pub feeds: Vec<FeedName>,
}

impl SiteLine {
    /// Whether its allow list covers the feed.
    pub fn may_take(&self, feed: &FeedName) -> bool {
        covers(&self.allow, feed)
    }

    /// Without the feeds that other nodes of the hub serve. Where no node is named, the hub's own (address "") serves
    /// everything, and a sender nothing: it has not read an assignment of this site yet.
    pub fn served_at(mut self, own_address: &str) -> Self {
        if self.nodes.is_empty() && own_address.is_empty() {
            return self;
        }
        let own = self.nodes.iter().filter(|node| node.address == own_address);
        let here: BTreeSet<FeedName> = own.flat_map(|node| node.feeds.iter().cloned()).collect();
        self.subscriptions.retain(|item| here.contains(&item.feed));
        self.resends.retain(|item| here.contains(&item.feed));
        self
    }

    /// Without what the allow list does not cover, whatever was subscribed or ordered before.
    pub fn within_rights(mut self) -> Self {
        let covers = |feed: &FeedName| covers(&self.allow, feed);
        self.subscriptions.retain(|item| covers(&item.feed));
        self.resends.retain(|item| covers(&item.feed));
        for item in &mut self.subscriptions {
            item.within = limits_of(&self.limits, &item.feed);
        }
        for item in &mut self.resends {
            item.within = limits_of(&self.limits, &item.feed);
        }
        self
    }
}

/// What of the feed the site may have; `None`: all of it.
fn limits_of(limits: &[LimitLine], feed: &FeedName) -> Option<Vec<IdFilter>> {
    let granted = limits.iter().filter(|limit| limit.feed == *feed).map(|limit| limit.granted.clone());
    Some(granted.collect()).filter(|granted: &Vec<IdFilter>| !granted.is_empty())
}

fn covers(allow: &[String], feed: &FeedName) -> bool {
    allow.iter().any(|name| name == "*" || name == feed.as_str())
}

fn all_feeds() -> Vec<String> {
    vec!["*".to_owned()]
}

/// A credential, known by its hash.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct CredentialLine {
    /// SHA-256 of the secret, in hex.
    pub sha256: String,
    /// When it ends.
    pub expires_us: Option<WallMicros>,
    /// From when on the site is asked for another one; absent: never.
    #[serde(default)]
    pub renew_us: Option<WallMicros>,
    /// The one that it took the place of. While that is told too, nobody knows that the site shows this one.
    #[serde(default)]
    pub replaces: Option<String>,
}

impl CredentialLine {
    /// True once its time is over.
    pub fn has_ended(&self, now: WallMicros) -> bool {
        self.expires_us.is_some_and(|expires| expires <= now)
    }
}

/// What of a feed a site may have.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct LimitLine {
    /// The feed.
    pub feed: FeedName,
    /// Ids that match, unless they match the other.
    #[serde(flatten)]
    pub granted: IdFilter,
}

/// A subscription.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct SubscriptionLine {
    /// The feed.
    pub feed: FeedName,
    /// Ids that match are wanted.
    pub pattern: String,
    /// Unless they match this.
    pub not_pattern: Option<String>,
    /// Local software sees live products in order; a missing one holds back later ones so long.
    #[serde(default)]
    pub hold_us: Option<u64>,
    /// What was stored longer ago is not sent any more.
    #[serde(default)]
    pub max_age_us: Option<i64>,
    /// What of the feed the site may have at all; told apart, in `limits`.
    #[serde(skip)]
    pub within: Option<Vec<IdFilter>>,
}

/// Stored products that a site gets once more.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct ResendLine {
    /// Its number, never given twice.
    pub resend: u64,
    /// The feed.
    pub feed: FeedName,
    /// Whether the site gets what it has already, too.
    pub kind: ResendKind,
    /// Stored at this moment or later.
    pub from_us: WallMicros,
    /// Stored before this moment.
    pub to_us: WallMicros,
    /// Ids that go.
    pub wanted: IdFilter,
    /// Unless they match one of these.
    pub had: Vec<IdFilter>,
    /// What of the feed the site may have at all; told apart, in `limits`.
    #[serde(skip)]
    pub within: Option<Vec<IdFilter>>,
}

/// Why stored products travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ResendKind {
    /// Somebody asked for them.
    Resend,
    /// A subscription begins in the past.
    Backfill,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_subscribed_and_ordered_is_kept_to_what_the_site_may_have() {
        let wish = |feed: &str| serde_json::json!({"feed": feed, "pattern": ".*", "not_pattern": null});
        let filter = serde_json::json!({"pattern": "x", "not_pattern": null});
        let line = serde_json::json!({
            "site": "oslo", "credentials": [], "active": true, "allow": ["A", "B"],
            "limits": [{"feed": "A", "pattern": "^YZ", "not_pattern": "TEST"}, {"feed": "A", "pattern": "^SA"}],
            "subscriptions": [wish("A"), wish("B"), wish("C")],
            "resends": [{"resend": 1, "feed": "A", "kind": "resend", "from_us": 0, "to_us": 9, "wanted": filter,
                "had": []}],
        });
        let line = serde_json::from_value::<SiteLine>(line).unwrap().within_rights();
        let granted = |pattern: &str, not_pattern: Option<&str>| IdFilter {
            pattern: pattern.to_owned(),
            not_pattern: not_pattern.map(str::to_owned),
        };
        let of_a = Some(vec![granted("^YZ", Some("TEST")), granted("^SA", None)]);
        let kept: Vec<_> =
            line.subscriptions.iter().map(|it| (it.feed.as_str(), it.within.clone())).collect();
        assert_eq!(kept, [("A", of_a.clone()), ("B", None)]);
        assert_eq!(line.resends[0].within, of_a);
    }

    #[test]
    fn what_other_nodes_serve_is_left_to_them() {
        let wish = |feed: &str| serde_json::json!({"feed": feed, "pattern": ".*", "not_pattern": null});
        let line = serde_json::json!({
            "site": "oslo", "credentials": [], "active": true, "subscriptions": [wish("A"), wish("B")],
            "nodes": [{"address": "one:1", "feeds": ["A"]}, {"address": "two:1", "feeds": ["B"]}], "nodes_version": 3,
        });
        let line: SiteLine = serde_json::from_value(line).unwrap();
        let served = |line: &SiteLine, own: &str| -> Vec<String> {
            let line = line.clone().served_at(own);
            line.subscriptions.iter().map(|item| item.feed.to_string()).collect()
        };
        assert_eq!(served(&line, "one:1"), ["A"]);
        assert_eq!(served(&line, "two:1"), ["B"]);
        assert!(served(&line, "").is_empty(), "the hub's own node serves nothing that a sender does");
        let alone = SiteLine { nodes: Vec::new(), ..line };
        assert_eq!(served(&alone, ""), ["A", "B"]);
        assert!(
            served(&alone, "one:1").is_empty(),
            "a sender serves nothing before it is assigned something"
        );
    }
}
