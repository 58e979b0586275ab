//! What is told of a session's begin and end, and what is left when it ends.
use downburst_model::{FeedName, SiteName};

use super::Session;
use crate::hub::lock;
use crate::lines::Event;

impl Session {
    pub(super) fn tell_session(&self, state: &'static str, reason: Option<String>) {
        self.hub.event(&Event::Session {
            site: self.member.as_ref().map(|member| member.site.clone()),
            state,
            peer: self.peer.to_string(),
            reason,
            software: self.software.clone(),
            stand_by: self.stand_by,
            renews: self.member.is_some(),
        });
    }

    /// Remembers where the site stands in each feed. One that stands by takes them from another hub.
    pub(super) fn note_positions(&self, site: &SiteName) {
        if !self.stand_by {
            for (feed, epoch, settled) in self.machine.settled() {
                self.hub.backlogs.stands(site, feed, (epoch, settled));
            }
        }
    }

    /// The same of one feed.
    pub(super) fn note_position(&self, site: &SiteName, feed: &FeedName) {
        if let Some(settled) = self.machine.settled_of(feed).filter(|_| !self.stand_by) {
            self.hub.backlogs.stands(site, feed, settled);
        }
    }

    /// The site's end of the connection was meant: its receiver was asked to end, or goes elsewhere.
    /// Nothing goes on: false.
    pub(super) fn ended_by_the_site(&mut self) -> bool {
        if self.member.is_some() {
            self.reason.get_or_insert_with(|| "ended by the site".to_owned());
        }
        false
    }

    pub(super) fn leave(self) {
        if let Some(member) = &self.member {
            self.keep_learnt(member);
            self.note_positions(&member.site);
            self.hub.late_share.forget(member.handle.serial);
            self.hub.channels.forget(member.handle.serial);
            lock(&self.hub.resends_left).keep(&member.site, self.machine.resends_left());
            // After a newer connection's `connected`, the end of this one would say that the site has left.
            if self.hub.roster.unregister(&member.site, member.handle.serial) {
                self.tell_session("closed", self.reason.clone());
            }
        }
        if let Some(pending) = &self.pending {
            let sentence = self.reason.as_deref().unwrap_or("it was closed by the other side");
            if pending.ended(sentence) && self.reason.is_some() {
                self.tell_session("refused", self.reason.clone());
            }
        }
    }
}
