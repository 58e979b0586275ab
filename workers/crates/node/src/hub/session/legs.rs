//! Multicast legs as one session sees them.
use std::sync::Arc;
use std::time::Duration;

use downburst_model::{LegId, Sequence};
use downburst_session::{Forged, HubInput, LegJoin, LegLeft, Reception};
use downburst_vcmtp::{RepairChannel, Request};

use super::{Member, Session};
use crate::hub::lock;
use crate::hub::plans::TOO_SLOW_REST;
use crate::hub::roster::Repair;
use crate::lines::{Event, ReceptionLine};
use downburst_hub::shown;

impl Session {
    pub(super) fn leg_joined(&self, leg: LegId, after: Sequence, reception: Option<Reception>) {
        self.follow_legs();
        let Some(member) = &self.member else { return };
        let Some(feed) = lock(&self.hub.plans).feed_of(leg) else { return };
        member.handle.change().joined.insert(feed.clone(), leg);
        let site = member.site.clone();
        let reception = reception.map(|said| ReceptionLine {
            buffer_bytes: said.buffer_bytes,
            path: shown(&said.path),
            advice: said.advice.as_deref().map(shown),
        });
        let after = Some(after);
        self.hub.event(&Event::Leg { feed, leg, site, state: "joined", after, reason: None, reception });
    }

    /// The repair channel is offered at the port that the site came to, if datagrams are heard there.
    pub(super) fn join_leg(&mut self, mut join: LegJoin) {
        let port = self.port.filter(|port| self.hub.channels.hears(*port));
        join.channel = join.channel.zip(port).map(|(channel, port)| RepairChannel { port, ..channel });
        self.tell(HubInput::JoinLeg(Box::new(join)));
    }

    pub(super) fn nak(&mut self, leg: LegId, leg_epoch: u64, request: Request) {
        let Some(member) = &self.member else { return };
        if request.unanswered && !std::mem::replace(&mut self.told_unanswered, true) {
            let port = self.port.unwrap_or_default();
            let sentence = format!(
                "site {}: its requests by UDP get no answer, and repairs of multicast legs go by its session, \
                 which is slower where packets are lost; allow UDP port {port} of the hub in \
                 both directions",
                member.site
            );
            tracing::warn!("{sentence}");
            self.hub.event(&Event::Fault { sentence, feed: None, site: Some(member.site.clone()) });
        }
        lock(&self.hub.plans).nak(member.handle.serial, leg, leg_epoch, request);
    }

    /// Who of the group it is can't be told; the operator should know that it happens.
    pub(super) fn forged(&self, forged: Forged) {
        let Some(member) = &self.member else { return };
        tracing::warn!(leg = forged.leg.0, site = %member.site, "a member of the leg's group forges datagrams");
        lock(&self.hub.plans).forged(forged);
    }

    pub(super) fn leg_left(&mut self, left: LegLeft) {
        self.follow_legs();
        // What the session slept through is its own again.
        self.tell_grown();
        self.note_leg_left(left);
    }

    /// Sleeps through the appends of feeds that legs bring, and of no others.
    pub(super) fn follow_legs(&self) {
        for feed in &self.subscribed {
            self.watched.leave_to_leg(feed, self.machine.is_left_to_leg(feed));
        }
    }

    fn note_leg_left(&mut self, left: LegLeft) {
        if self.left_a_flood(&left) {
            self.flood.ebbs(self.hub.clock.monotonic());
        }
        let Some(member) = &self.member else { return };
        let feed = {
            let mut status = member.handle.change();
            let feed =
                status.joined.iter().find(|(_, joined)| **joined == left.leg).map(|(feed, _)| feed.clone());
            if let Some(feed) = &feed {
                status.joined.remove(feed);
            }
            feed
        };
        let Some(feed) = feed.or_else(|| lock(&self.hub.plans).feed_of(left.leg)) else { return };
        let is_too_slow = left.too_slow == Some(true);
        if self.hub_found_too_slow(&left) {
            return self.offer_again_later(member, Duration::from_micros(TOO_SLOW_REST.0));
        }
        if is_too_slow {
            self.hub.let_rest(&member.site, left.leg);
        }
        let state = match left.known_to {
            _ if is_too_slow => "too-slow",
            Some(_) => "left",
            None => "never-heard",
        };
        let (site, leg) = (member.site.clone(), left.leg);
        self.hub.event(&Event::Leg {
            feed,
            leg,
            site,
            state,
            after: left.known_to,
            reason: Some(shown(&left.reason)),
            reception: None,
        });
        let rest = if is_too_slow { Duration::from_micros(TOO_SLOW_REST.0) } else { OFFER_AGAIN };
        self.offer_again_later(member, rest);
    }

    /// By the site's word or the hub's own judgement.
    fn left_a_flood(&self, left: &LegLeft) -> bool {
        left.too_slow == Some(true) || self.hub_found_too_slow(left)
    }

    fn hub_found_too_slow(&self, left: &LegLeft) -> bool {
        let now = self.hub.clock.monotonic();
        let site = self.member.as_ref().map(|member| &member.site);
        site.is_some_and(|site| lock(&self.hub.plans).is_too_slow(now, site, left.leg))
    }

    /// Says again what was lost on the leg's group.
    pub(super) fn repair(&mut self, repair: Repair) {
        self.tell(match repair {
            Repair::Packet { leg, leg_epoch, packet, payload } => {
                HubInput::Repair { leg, leg_epoch, packet, payload }
            }
            Repair::Gone { leg, leg_epoch, packets } => HubInput::PacketsGone { leg, leg_epoch, packets },
        });
    }

    /// A site that lost its leg gets another chance, as long as the plan wants it there.
    fn offer_again_later(&self, member: &Member, rest: Duration) {
        let (hub, site, serial) = (Arc::downgrade(&self.hub), member.site.clone(), member.handle.serial);
        tokio::spawn(async move {
            tokio::time::sleep(rest).await;
            let Some(hub) = hub.upgrade() else { return };
            if let Some(handle) = hub.roster.session(&site).filter(|handle| handle.serial == serial) {
                hub.place_site(&site, &handle);
            }
        });
    }
}

/// Long against the time a site needs to find a leg silent, so that a broken group costs little.
const OFFER_AGAIN: Duration = Duration::from_secs(15);
