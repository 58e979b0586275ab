//! The agent's lines about sites.
use std::collections::BTreeSet;

use downburst_model::{FeedName, IdFilter, Sequence, SiteName, WallMicros};
use downburst_session::{MOST_CHAINS, relay_chain};
use serde::Deserialize;

/// The configuration of a site.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct SiteLine {
    /// Its name.
    pub site: SiteName,
    /// The credentials that prove its identity.
    pub credentials: Vec<CredentialLine>,
    /// Its rights.
    #[serde(flatten)]
    pub rights: RightsLine,
    /// Its subscriptions.
    pub subscriptions: Vec<SubscriptionLine>,
    /// Its resends.
    #[serde(default)]
    pub resends: Vec<ResendLine>,
    /// The interface on which it receives multicast; empty: the one that reaches the hub.
    #[serde(default)]
    pub interface: String,
    /// False: the site may not connect.
    pub active: bool,
    /// The number of its data connections; absent: as many as help.
    #[serde(default)]
    pub data_connections: Option<usize>,
    /// The rate of its access in bits per second, if known.
    #[serde(default)]
    pub access_rate_bps: Option<u64>,
    /// The site's rate limit in each hour of the day (UTC), in bits per second; 0: limited by its access alone.
    /// Empty: 0 for all hours.
    #[serde(default)]
    pub ceiling_bps_by_hour: Vec<u64>,
    /// The site's own LDM, if it keeps that.
    #[serde(flatten)]
    pub kept_ldm: KeptLdmLine,
    /// The chains of relays by which it is to come, best first, each `HOST:PORT` or `HOST:PORT,HOST:PORT`; empty: the
    /// direct way.
    #[serde(default)]
    pub via: Vec<String>,
    /// The nodes of the hub that serve it, each with its feeds; empty: the hub's own node serves all.
    #[serde(default)]
    pub nodes: Vec<NodeLine>,
    /// Increases whenever feeds or sites are assigned to other nodes.
    #[serde(default)]
    pub nodes_version: u64,
    /// Its positions as last reported to the agent.
    #[serde(default)]
    pub positions: Vec<PositionLine>,
}

/// The LDM of a site that receives by that instead of by a node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct KeptLdmLine {
    /// A pattern that matches its name, in lower case, or its address. The site's subscriptions are the feeds that it
    /// may request.
    #[serde(default)]
    pub ldm_host: Option<String>,
    /// If several sites match a host, the one with the lowest number decides.
    #[serde(default)]
    pub ldm_order: i64,
}

/// The rights of a site: the feeds that it may receive.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct RightsLine {
    /// The feeds; `*`: all.
    #[serde(default = "all_feeds")]
    pub allow: Vec<String>,
    /// The parts of these feeds; all of a feed that is not named here.
    #[serde(default)]
    pub limits: Vec<LimitLine>,
    /// The exchange of products with siblings; absent: none.
    #[serde(default)]
    pub siblings: Option<SiblingsLine>,
}

/// A site's exchange of products with its siblings.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct SiblingsLine {
    /// Its address for siblings, `HOST:PORT`; absent: that of its session, with the port that it reports.
    #[serde(default)]
    pub address: Option<String>,
    /// The most bytes per second that it gives to all siblings together.
    pub upload_bytes_per_second: u64,
    /// The most bytes that it gives in a day (UTC).
    pub upload_bytes_per_day: u64,
}

impl RightsLine {
    /// True if the allow list covers the feed.
    fn cover(&self, feed: &FeedName) -> bool {
        self.allow.iter().any(|name| name == "*" || name == feed.as_str())
    }

    /// The parts of the feed that the site may receive; `None`: all of it.
    fn limits_of(&self, feed: &FeedName) -> Option<Vec<IdFilter>> {
        let granted =
            self.limits.iter().filter(|limit| limit.feed == *feed).map(|limit| limit.granted.clone());
        Some(granted.collect()).filter(|granted: &Vec<IdFilter>| !granted.is_empty())
    }
}

impl Default for RightsLine {
    fn default() -> Self {
        Self { allow: all_feeds(), limits: Vec::new(), siblings: None }
    }
}

/// A site's position in a feed.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct PositionLine {
    /// The feed.
    pub feed: FeedName,
    /// The life of its log, as decimal text.
    pub epoch: String,
    /// Everything up to this sequence was settled.
    pub settled_to: Sequence,
}

/// One of the nodes that serve a site.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct NodeLine {
    /// The address for the site.
    pub address: String,
    /// The feeds of the site that it serves.
    pub feeds: Vec<FeedName>,
}

impl SiteLine {
    /// True if its allow list covers the feed.
    pub fn may_take(&self, feed: &FeedName) -> bool {
        self.rights.cover(feed)
    }

    /// Removes the feeds that other nodes of the hub serve. Without any named node, the hub's own (address "")
    /// serves everything, and a sender nothing: it has not read an assignment of this site yet.
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

    /// Removes the chains of relays that can't be used; returns a sentence for the operator if there was one.
    pub fn drop_bad_ways(&mut self) -> Option<String> {
        let mut fault = None;
        self.via.retain(|given| match relay_chain(given) {
            Ok(_) => true,
            Err(sentence) => {
                fault.get_or_insert(sentence);
                false
            }
        });
        if self.via.len() > MOST_CHAINS {
            let many = self.via.len();
            self.via.truncate(MOST_CHAINS);
            fault.get_or_insert_with(|| format!("{many} chains are given; {MOST_CHAINS} are the most"));
        }
        fault.map(|fault| format!("not all relays of site {} can be used: {fault}", self.site))
    }

    /// Removes subscriptions and resends that the allow list does not cover, and limits the others.
    pub fn within_rights(mut self) -> Self {
        self.subscriptions.retain(|item| self.rights.cover(&item.feed));
        self.resends.retain(|item| self.rights.cover(&item.feed));
        for item in &mut self.subscriptions {
            item.within = self.rights.limits_of(&item.feed);
        }
        for item in &mut self.resends {
            item.within = self.rights.limits_of(&item.feed);
        }
        self
    }
}

fn all_feeds() -> Vec<String> {
    vec!["*".to_owned()]
}

/// A credential, identified by its hash.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct CredentialLine {
    /// SHA-256 of the secret, in hex.
    pub sha256: String,
    /// The time of its expiry.
    pub expires_us: Option<WallMicros>,
    /// The time after which the site is asked for another one; absent: never.
    #[serde(default)]
    pub renew_us: Option<WallMicros>,
    /// The credential that it replaces. While both are in the list, the agent does not know that the site uses this
    /// one.
    #[serde(default)]
    pub replaces: Option<String>,
}

impl CredentialLine {
    /// True after its expiry.
    pub fn has_ended(&self, now: WallMicros) -> bool {
        self.expires_us.is_some_and(|expires| expires <= now)
    }
}

/// The part of a feed that a site may receive.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct LimitLine {
    /// The feed.
    pub feed: FeedName,
    /// The granted ids: those that match the pattern, unless they match the other one.
    #[serde(flatten)]
    pub granted: IdFilter,
}

/// A subscription.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct SubscriptionLine {
    /// The feed.
    pub feed: FeedName,
    /// The pattern of wanted ids.
    pub pattern: String,
    /// The pattern of ids that are excluded from these.
    pub not_pattern: Option<String>,
    /// Local software receives live products in order; a missing one holds back later ones for this time.
    #[serde(default)]
    pub hold_us: Option<u64>,
    /// The maximum age of products that are sent.
    #[serde(default)]
    pub max_age_us: Option<i64>,
    /// The parts of the feed that the site may receive; sent separately, in `limits`.
    #[serde(skip)]
    pub within: Option<Vec<IdFilter>>,
}

/// A resend of stored products to a site.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct ResendLine {
    /// Its number, never assigned twice.
    pub resend: u64,
    /// The feed.
    pub feed: FeedName,
    /// Its kind.
    pub kind: ResendKind,
    /// Products stored at this time or later.
    pub from_us: WallMicros,
    /// Products stored before this time.
    pub to_us: WallMicros,
    /// The filter of sent ids.
    pub wanted: IdFilter,
    /// Filters of ids that are excluded from these.
    pub had: Vec<IdFilter>,
    /// The parts of the feed that the site may receive; sent separately, in `limits`.
    #[serde(skip)]
    pub within: Option<Vec<IdFilter>>,
}

/// The reason of a resend.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ResendKind {
    /// Requested by a person.
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
    fn a_way_that_can_not_be_is_left_out_with_a_sentence_and_the_others_stand() {
        let line = |via: &[&str]| {
            let line = serde_json::json!({
                "site": "oslo", "credentials": [], "active": true, "subscriptions": [], "via": via,
            });
            serde_json::from_value::<SiteLine>(line).unwrap()
        };
        for (via, left, words) in [
            (
                &["a:1", "nowhere", "b:1,c:1"][..],
                &["a:1", "b:1,c:1"][..],
                "of site oslo can be used: nowhere",
            ),
            (&["a:1"; 9], &["a:1"; 8], "9 chains are given; 8 are the most"),
        ] {
            let mut line = line(via);
            let sentence = line.drop_bad_ways().unwrap();
            assert!(line.via == left && sentence.contains(words), "{sentence}: {:?}", line.via);
        }
        assert_eq!(line(&["a:1"]).drop_bad_ways(), None);
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
