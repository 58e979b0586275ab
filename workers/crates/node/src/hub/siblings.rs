//! Repair between sites at the hub: referrals, grants and their end, and the account.
use std::net::SocketAddr;

use downburst_hub::{Giver, SessionInput, SiblingAddress, SiblingOutput, Withdrawal};
use downburst_model::SiteName;
use downburst_session::{
    HubInput, MOST_WITHDRAWN, ReferRequest, ReferralReport, SiblingChoice, SiblingGrant, SiblingPort,
    SiblingWithdrawn, Ticket,
};

use super::session::Task;
use super::{Hub, lock};
use crate::hub::roster::Command;
use crate::lines::Event;

impl Task {
    pub(super) fn exchange(&mut self, output: &SiblingOutput) {
        match output {
            SiblingOutput::Refer(request) => self.refer(request),
            SiblingOutput::Port(port) => self.sibling_port(*port),
            SiblingOutput::Ended(report) => self.referral_ended(report),
        }
    }

    /// The site's port for siblings is open.
    fn sibling_port(&mut self, port: SiblingPort) {
        let (Some(site), Some(member)) = (self.session.site(), &self.member) else { return };
        let line = self.hub.roster.site(site).filter(|_| !self.session.stands_by());
        let Some(siblings) = line.and_then(|line| line.rights.siblings) else { return };
        let seen = || SocketAddr::new(member.handle.peer, port.port).to_string();
        let address = siblings.address.unwrap_or_else(seen);
        {
            let mut known = lock(&self.hub.sessions.siblings);
            known.opened(site.clone(), SiblingAddress { address, fingerprint: port.fingerprint });
            for (feed, epoch, settled) in self.session.settled() {
                known.stands(site, feed, (epoch, &settled));
            }
        }
        self.tell(SessionInput::Pass(HubInput::Refers(true)));
    }

    /// Looks for a sibling that holds products which this site lacks.
    fn refer(&mut self, request: &ReferRequest) {
        let sibling = self.session.site().and_then(|site| self.hub.refer(site, request));
        self.tell(SessionInput::Pass(HubInput::Referred { number: request.number, sibling }));
    }

    /// A referral of this site is over.
    fn referral_ended(&self, report: &ReferralReport) {
        let Some(site) = self.session.site() else { return };
        let now = self.hub.clock.monotonic();
        let named = lock(&self.hub.sessions.siblings).ended(now, site, report);
        if let Some((giver, sentence)) = named {
            tracing::warn!(site = giver.as_str(), "{sentence}");
            self.hub.event(&Event::Fault { sentence, feed: Some(report.feed.clone()), site: Some(giver) });
        }
    }
}

impl Hub {
    /// Has the best sibling expect the site; `None`: no sibling holds any of the products.
    fn refer(&self, taker: &SiteName, request: &ReferRequest) -> Option<SiblingChoice> {
        let now = self.clock.monotonic();
        let may = |giver: &SiteName| self.roster.may_give(giver, taker, &request.feed);
        let giver = lock(&self.sessions.siblings).choose(now, taker, request, may)?;
        let session = self.roster.session(&giver.site)?;
        let ticket = draw()?;
        let Giver { site, at, taker_fingerprint, holds } = giver;
        let grant = SiblingGrant {
            ticket: ticket.clone(),
            sibling: taker.clone(),
            fingerprint: taker_fingerprint,
            feed: request.feed.clone(),
            epoch: request.epoch,
            sequences: holds.clone(),
        };
        let input = SessionInput::Pass(HubInput::GrantSibling(Box::new(grant)));
        session.commands.send(Command::Tell(input)).ok()?;
        lock(&self.sessions.siblings).granted(now, taker, request, site.clone(), ticket.clone());
        Some(SiblingChoice { site, address: at.address, fingerprint: at.fingerprint, ticket, holds })
    }

    /// Ends the exchange of sites that may no longer take part in it.
    pub(super) fn look_at_siblings(&self) {
        let mut known = lock(&self.sessions.siblings);
        let left: Vec<SiteName> =
            known.sites().filter(|site| !self.roster.exchanges(site)).cloned().collect();
        let mut gone: Vec<Withdrawal> = left.iter().flat_map(|site| known.closed(site)).collect();
        gone.extend(known.withdraw(|giver, taker, feed| !self.roster.may_give(giver, taker, feed)));
        drop(known);
        self.withdraw(gone);
    }

    /// A site's session ended.
    pub(super) fn sibling_gone(&self, site: &SiteName) {
        let gone = lock(&self.sessions.siblings).closed(site);
        self.withdraw(gone);
    }

    /// Reports the bytes that siblings gave since the last report.
    pub(super) fn tell_saved(&self) {
        let saved = lock(&self.sessions.siblings).take_account();
        if !saved.is_empty() {
            self.event(&Event::Siblings { saved });
        }
    }

    fn withdraw(&self, gone: Vec<Withdrawal>) {
        for (giver, tickets) in gone {
            let Some(session) = self.roster.session(&giver) else { continue };
            for tickets in tickets.chunks(MOST_WITHDRAWN) {
                let withdrawn = SiblingWithdrawn { tickets: tickets.to_vec() };
                let input = SessionInput::Pass(HubInput::WithdrawSiblings(withdrawn));
                let _ = session.commands.send(Command::Tell(input));
            }
        }
    }
}

fn draw() -> Option<Ticket> {
    let mut bits = [0_u8; 16];
    getrandom::fill(&mut bits).ok()?;
    Some(Ticket(bits))
}
