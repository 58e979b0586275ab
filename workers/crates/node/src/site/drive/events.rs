//! What the machine tells of, and what follows from it for the log file, for local software and for the supervisor.
use std::collections::BTreeMap;
use std::time::Duration;

use downburst_model::{FeedName, SiteName};
use downburst_session::{FeedHandling, Missing, RefusalCode, Refused, SiteEvent};
use tokio::time::Instant;

use super::Site;
use crate::site::role::{News, Role};

impl Site {
    pub(super) fn event(&mut self, event: SiteEvent) {
        match event {
            SiteEvent::Welcome { site, hub, stand_by } => self.welcome(&site, hub, stand_by),
            SiteEvent::Duplicates { feed, rule } => self.shelf.duplicates(&feed, rule),
            SiteEvent::Refused(refused) => self.refused(refused),
            SiteEvent::Subscriptions(items) => {
                for item in items {
                    tracing::info!(
                        feed = item.feed.as_str(),
                        pattern = item.pattern,
                        not = item.not_pattern,
                        "subscribed"
                    );
                }
            }
            SiteEvent::Nodes(nodes) => self.tell_news(News::Nodes(nodes)),
            SiteEvent::Handling(items) => self.order_feeds(&items),
            SiteEvent::Clock(clock) => {
                tracing::debug!(offset_us = clock.offset_us, bound_us = clock.bound_us, "clock compared");
            }
            SiteEvent::CircuitOffered(offer) => self.circuits.make(offer),
            SiteEvent::CircuitEnded(end) => self.circuits.end(end.lease),
            SiteEvent::CredentialWanted(wanted) => self.want_credential(&wanted.of),
            SiteEvent::CredentialKept(kept) => self.keep_credential(&kept),
            SiteEvent::StreamAttached(stream) => {
                tracing::info!(stream = stream.0, "a data connection is up");
            }
            SiteEvent::StreamEnded { stream, reason } => {
                tracing::info!(stream = stream.0, reason, "a data connection ended");
            }
            SiteEvent::LegJoined { leg, feed } => {
                tracing::info!(leg = leg.0, feed = feed.as_str(), "a multicast leg is received")
            }
            SiteEvent::LegLeft { leg, reason } => {
                tracing::info!(leg = leg.0, reason, "a multicast leg ended")
            }
            SiteEvent::RepairChannel { leg, open: true } => {
                tracing::info!(leg = leg.0, "lost packets of the leg are asked for and repaired by UDP");
            }
            SiteEvent::RepairChannel { leg, open: false } => {
                tracing::warn!(
                    leg = leg.0,
                    "the hub answers no UDP any more; lost packets of the leg are repaired by the session"
                );
            }
            SiteEvent::Lost { key, reason } => {
                tracing::error!(
                    feed = key.feed.as_str(),
                    sequence = key.sequence.0,
                    reason,
                    "a product is lost here"
                );
            }
            SiteEvent::Violation(sentence) => tracing::error!("the hub broke the protocol: {sentence}"),
            SiteEvent::Dead => {
                self.silent = true;
                tracing::warn!(hub = self.hub.address, "the hub sent nothing in time; reconnecting");
            }
        }
    }

    fn welcome(&mut self, site: &SiteName, hub: String, stand_by: bool) {
        tracing::info!(site = site.as_str(), hub, address = self.hub.address, stand_by, "connected");
        self.welcomed = Some(Instant::now());
        self.shelf.hub_is(&hub);
        if let Err(sentence) = self.identity.accepted(site) {
            self.tell_news(News::Unkept(sentence));
        }
        if self.role == Role::StandBy && !stand_by {
            tracing::info!(
                address = self.hub.address,
                "the hub's release allows no stand-by sites; it is contacted when needed"
            );
            self.resting = true;
            self.hang_up = true;
        } else {
            self.tell_news(News::Well { hub, role: self.role });
        }
    }

    pub(super) fn tell_news(&self, news: News) {
        // Nobody listens any more at the very end.
        let _ = self.news.send(news);
    }

    fn refused(&mut self, refused: Refused) {
        match refused.code {
            RefusalCode::Credential | RefusalCode::Expired if self.identity.take_up() => {
                tracing::info!(
                    "the credential was replaced at another node of the hub; connecting with the new one"
                );
                self.hang_up = true;
            }
            RefusalCode::Credential | RefusalCode::Expired if self.identity.refused() => {
                tracing::info!(
                    "the hub refused: {}; the site shows another of its credentials",
                    refused.sentence
                );
                self.hang_up = true;
            }
            RefusalCode::Version | RefusalCode::Token | RefusalCode::Credential | RefusalCode::Expired
                if self.decides =>
            {
                self.tell_news(News::Refused(refused.sentence));
                self.resting = true;
                self.hang_up = true;
            }
            _ => {
                tracing::warn!("the hub refused: {}", refused.sentence);
                self.hang_up = true;
            }
        }
    }

    /// Has local software see these feeds in order, and no others of this connection's. The hub that serves decides.
    fn order_feeds(&mut self, items: &[FeedHandling]) {
        if self.role != Role::Serve {
            return self.ordered.clear();
        }
        let holds: BTreeMap<FeedName, Duration> = items
            .iter()
            .filter(|item| self.only.as_ref().is_none_or(|only| only.contains(&item.feed)))
            .filter_map(|item| Some((item.feed.clone(), Duration::from_micros(item.hold_us?))))
            .collect();
        self.ordered = holds.keys().map(|feed| (feed.clone(), Missing::default())).collect();
        if let Some(files) = &self.files {
            files.order(self.only.as_ref(), holds);
        }
    }

    /// Tells what is missing of the feeds that are shown in order, where that changed.
    pub(super) fn tell_missing(&mut self) {
        let Some(files) = &self.files else { return };
        for (feed, told) in &mut self.ordered {
            let missing = self.machine.missing(feed);
            if *told != missing {
                told.clone_from(&missing);
                files.missing(feed, missing);
            }
        }
    }
}
