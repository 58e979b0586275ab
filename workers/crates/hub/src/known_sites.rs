//! The sites that the agent sent: their credentials and rights, and the due steps of credentials.
use std::collections::{BTreeMap, BTreeSet};

use downburst_model::{FeedName, Micros, SiteName, WallMicros};
use downburst_session::{RefusalCode, Refused};
use downburst_vcmtp::Urgency;

use crate::sites::{CredentialLine, SiteLine};

/// All sites, or nothing yet: no site is refused permanently before the agent has sent the set.
#[derive(Debug, Default)]
pub struct Sites(Option<BTreeMap<SiteName, SiteLine>>);

/// The due step of a credential.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CredentialStep {
    /// The site needs another credential.
    Ask,
    /// The site uses a replacement, and the replaced credential is still valid: notify the agent.
    Tell,
}

/// The progress of a change of a session's credential.
#[derive(Clone, Debug, Default)]
pub struct CredentialChange {
    /// The last step, with its credential and time.
    done: Option<(String, CredentialStep, Micros)>,
}

impl Sites {
    /// Takes the set from the agent, reduced to each site's rights.
    pub fn told(lines: Vec<SiteLine>) -> Self {
        Self(Some(lines.into_iter().map(|line| (line.site.clone(), line.within_rights())).collect()))
    }

    /// The agent's line of a site.
    pub fn find(&self, site: &SiteName) -> Option<&SiteLine> {
        self.0.as_ref()?.get(site)
    }

    /// Every site, in the order of the names.
    pub fn all(&self) -> impl Iterator<Item = &SiteLine> {
        self.0.iter().flat_map(BTreeMap::values)
    }

    /// The feeds that other nodes of the hub serve to any site.
    pub fn placed_feeds(&self) -> BTreeSet<FeedName> {
        self.all().flat_map(|line| &line.nodes).flat_map(|node| node.feeds.iter().cloned()).collect()
    }

    /// The site, if this is one of its credentials, expired or not.
    ///
    /// # Errors
    ///
    /// The refusal of a credential that is unknown or revoked.
    pub fn holding(&self, site: &SiteName, sha256: &str) -> Result<&SiteLine, Refused> {
        self.find(site).filter(|line| holds(line, sha256)).ok_or_else(|| revoked(site))
    }

    /// Checks a credential.
    ///
    /// # Errors
    ///
    /// The refusal, for the site.
    pub fn check(&self, site: &SiteName, sha256: &str, now: WallMicros) -> Result<&SiteLine, Refused> {
        let Some(sites) = &self.0 else {
            let sentence = "the hub is starting; connect again in a moment".to_owned();
            return Err(Refused { code: RefusalCode::Unavailable, sentence });
        };
        let line = sites.get(site).filter(|line| line.active).ok_or_else(|| revoked(site))?;
        let credential = line.credentials.iter().find(|credential| credential.sha256 == sha256);
        let credential = credential.ok_or_else(|| revoked(site))?;
        if credential.has_ended(now) {
            let sentence = format!(
                "the credential of site {site} has expired; ask the hub's operator for a new token (downburst sites \
                 token {site}), and start the receiver again with it as --token-file"
            );
            return Err(Refused { code: RefusalCode::Expired, sentence });
        }
        Ok(line)
    }

    /// The urgency of excluding the holder of this credential from a leg of the feed; `None` if the holder may read
    /// it.
    pub fn barred(&self, site: &SiteName, sha256: &str, feed: &FeedName, now: WallMicros) -> Option<Urgency> {
        match self.check(site, sha256, now) {
            Ok(line) if !line.may_take(feed) => Some(Urgency::AtOnce),
            Ok(line) => line.subscriptions.iter().all(|item| item.feed != *feed).then_some(Urgency::Soon),
            Err(refused) if refused.code == RefusalCode::Unavailable => None,
            // The site continues to read with the replacement. A holder of the former credential alone does not.
            Err(_) if self.was_replaced(site, sha256, feed, now) => Some(Urgency::Soon),
            Err(_) => Some(Urgency::AtOnce),
        }
    }

    /// The due step of the credential of a site's session.
    pub fn step(&self, site: &SiteName, sha256: &str, now: WallMicros) -> Option<CredentialStep> {
        let line = self.find(site)?;
        let credential = line.credentials.iter().find(|credential| credential.sha256 == sha256)?;
        if credential.replaces.as_deref().is_some_and(|former| holds(line, former)) {
            return Some(CredentialStep::Tell);
        }
        credential.renew_us.is_some_and(|at| at <= now).then_some(CredentialStep::Ask)
    }

    /// The credential that this one replaces, if the agent sent one with it and this one is valid.
    pub fn replaced_by(&self, site: &SiteName, sha256: &str, now: WallMicros) -> Option<String> {
        let line = self.check(site, sha256, now).ok()?;
        line.credentials.iter().find(|credential| credential.sha256 == sha256)?.replaces.clone()
    }

    /// True if this credential was replaced by a valid one of the site, which may read the feed.
    fn was_replaced(&self, site: &SiteName, sha256: &str, feed: &FeedName, now: WallMicros) -> bool {
        let follows = |it: &CredentialLine| it.replaces.as_deref() == Some(sha256) && !it.has_ended(now);
        let line = self.find(site).filter(|line| line.active && line.may_take(feed));
        line.is_some_and(|line| line.credentials.iter().any(follows))
    }
}

impl CredentialChange {
    /// The time of the last step.
    pub fn last(&self) -> Option<Micros> {
        self.done.as_ref().map(|(_, _, at)| *at)
    }

    /// Records a step as done now; false if the same one was done a moment ago.
    pub fn begin(&mut self, sha256: &str, step: CredentialStep, now: Micros) -> bool {
        let done = self.done.as_ref().filter(|(of, done, _)| of == sha256 && *done == step);
        if done.is_some_and(|(_, _, at)| now.since(*at) < AGAIN) {
            return false;
        }
        self.done = Some((sha256.to_owned(), step, now));
        true
    }
}

fn holds(line: &SiteLine, sha256: &str) -> bool {
    line.active && line.credentials.iter().any(|credential| credential.sha256 == sha256)
}

fn revoked(site: &SiteName) -> Refused {
    let sentence = format!(
        "the credential of site {site} is not valid here (unknown or revoked); ask the hub's operator for a new token"
    );
    Refused { code: RefusalCode::Credential, sentence }
}

/// The interval at which an unanswered step is repeated.
const AGAIN: Micros = Micros::from_secs(60);

#[cfg(test)]
mod tests {
    use super::*;

    fn site() -> SiteName {
        SiteName::parse("unl.edu").unwrap()
    }

    fn told(credentials: serde_json::Value) -> Sites {
        let wish = serde_json::json!({"feed": "NGRID", "pattern": ".*", "not_pattern": null});
        let line = serde_json::json!({
            "site": "unl.edu", "active": true, "credentials": credentials, "subscriptions": [wish],
        });
        Sites::told(vec![serde_json::from_value(line).unwrap()])
    }

    #[test]
    fn nobody_is_refused_for_good_before_the_set_is_told() {
        let refused = |sites: &Sites, at| sites.check(&site(), "it", WallMicros(at)).err().map(|it| it.code);
        assert_eq!(refused(&Sites::default(), 0), Some(RefusalCode::Unavailable));
        let sites = told(serde_json::json!([{"sha256": "it", "expires_us": 500}]));
        assert_eq!((refused(&sites, 499), refused(&sites, 500)), (None, Some(RefusalCode::Expired)));
        assert_eq!(refused(&told(serde_json::json!([])), 0), Some(RefusalCode::Credential));
        assert_eq!(refused(&Sites::told(Vec::new()), 0), Some(RefusalCode::Credential));
        assert!(sites.holding(&site(), "it").is_ok(), "its end is told by the clock alone");
    }

    #[test]
    fn who_has_a_replaced_credential_alone_is_shut_out_soon_and_a_revoked_one_at_once() {
        let feed = FeedName::parse("NGRID").unwrap();
        let new = serde_json::json!({"sha256": "next", "expires_us": 900, "replaces": "first"});
        let both = told(serde_json::json!([{"sha256": "first", "expires_us": 500}, new]));
        let barred = |sites: &Sites, sha256| sites.barred(&site(), sha256, &feed, WallMicros(0));
        assert_eq!((barred(&both, "first"), barred(&both, "next")), (None, None));
        assert_eq!(both.replaced_by(&site(), "next", WallMicros(0)).as_deref(), Some("first"));
        assert_eq!(both.replaced_by(&site(), "first", WallMicros(0)), None);
        let one = told(serde_json::json!([new]));
        assert_eq!((barred(&one, "first"), barred(&one, "next")), (Some(Urgency::Soon), None));
        assert_eq!(barred(&told(serde_json::json!([])), "next"), Some(Urgency::AtOnce));
    }

    #[test]
    fn a_change_is_asked_for_when_it_is_due_and_again_after_a_minute() {
        let sites = told(serde_json::json!([{"sha256": "it", "expires_us": 900, "renew_us": 100}]));
        let step = |at| sites.step(&site(), "it", WallMicros(at));
        assert_eq!((step(99), step(100)), (None, Some(CredentialStep::Ask)));
        let mut change = CredentialChange::default();
        let mut begun = |second| change.begin("it", CredentialStep::Ask, Micros::from_secs(second));
        assert_eq!([begun(1), begun(60), begun(61)], [true, false, true]);
        assert!(change.begin("it", CredentialStep::Tell, Micros::from_secs(62)), "another step");
        assert!(change.begin("next", CredentialStep::Tell, Micros::from_secs(63)), "another credential");
    }
}
