//! Reactions of the connection to events of its session.
use downburst_model::{Now, SiteName};
use downburst_session::{RefusalCode, Refused, SiteEvent};

use super::{Connection, Link, Next, Output};
use crate::role::{News, Role};

impl Connection {
    pub(super) fn event(&mut self, now: Now, event: SiteEvent) {
        match &event {
            SiteEvent::Welcome { site, hub, stand_by } => self.welcome(now, site, hub, *stand_by),
            SiteEvent::Refused(refused) => self.refused(now, refused),
            SiteEvent::Nodes(nodes) => self.news(News::Nodes(nodes.clone())),
            SiteEvent::Handling(items) => {
                let only = self.settings.only.as_ref();
                let order = self.local.order(self.role == Role::Serve, only, items);
                self.outputs.extend(order.map(Output::Show));
            }
            SiteEvent::CredentialWanted(wanted) => {
                let next = self.credentials.wanted(wanted.of.clone());
                self.follow(now, next);
            }
            SiteEvent::CredentialKept(kept) => {
                let next = self.credentials.kept(kept, now.wall);
                self.follow(now, next);
            }
            SiteEvent::Dead => self.attempts.silent = true,
            _ => {}
        }
        self.outputs.push_back(Output::Event(event));
    }

    /// Carries out the next step of the exchange of credentials.
    pub(super) fn follow(&mut self, now: Now, next: Next) {
        match next {
            Next::Nothing => {}
            Next::Order(order) => self.outputs.push_back(Output::Credentials(order)),
            Next::Tell(word) => {
                let was_shown = matches!(word, downburst_session::SiteInput::ShowCredential(_));
                self.tell(now, word);
                if was_shown {
                    self.outputs.push_back(Output::Credentials(super::CredentialsOrder::EndTurn));
                }
            }
            Next::HangUp => self.attempts.hang_up |= self.link == Link::Up,
            Next::Unkept(sentence) => self.news(News::Unkept(sentence)),
            Next::Refused => {
                let sentence = self.attempts.refusal.take().unwrap_or_default();
                self.is_refused(sentence);
            }
        }
    }

    fn welcome(&mut self, now: Now, site: &SiteName, hub: &str, stand_by: bool) {
        self.attempts.welcomed = Some(now.monotonic);
        let next = self.credentials.accepted(site);
        self.follow(now, next);
        if self.role == Role::StandBy && !stand_by {
            tracing::info!(
                address = self.settings.address,
                "the hub's release allows no stand-by sites; it is contacted when needed"
            );
            (self.attempts.resting, self.attempts.hang_up) = (true, true);
        } else {
            self.news(News::Well { hub: hub.to_owned(), role: self.role });
        }
    }

    /// Handles a refusal; the session itself closes the connection.
    fn refused(&mut self, now: Now, refused: &Refused) {
        let sentence = refused.sentence.clone();
        match refused.code {
            RefusalCode::Credential | RefusalCode::Expired => {
                self.attempts.refusal = Some(sentence);
                let next = self.credentials.refused();
                self.follow(now, next);
            }
            RefusalCode::Version | RefusalCode::Token => self.is_refused(sentence),
            RefusalCode::Busy | RefusalCode::Protocol | RefusalCode::Unavailable => {
                tracing::warn!("the hub refused: {sentence}");
            }
        }
    }

    /// Stops further attempts after a final refusal. A refusal by a node that does not decide is not final: it may
    /// not know a new site yet.
    fn is_refused(&mut self, sentence: String) {
        if !self.settings.decides {
            return tracing::warn!("the hub refused: {sentence}");
        }
        self.news(News::Refused(sentence));
        self.attempts.resting = true;
        if matches!(self.link, Link::Waiting { .. }) {
            self.link = Link::Resting;
        }
    }
}
