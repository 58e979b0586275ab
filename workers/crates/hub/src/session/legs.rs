//! One session's multicast legs, and the floods that they leave behind.
use std::collections::{BTreeMap, BTreeSet};

use downburst_model::{FeedName, LegId, Micros, Now, Sequence};
use downburst_session::{Forged, HostReading, HubInput, LegJoin, LegLeft, Reception, is_catch_up};
use downburst_vcmtp::{RepairChannel, Request};

use crate::flood::{Flood, Sight};
use crate::text::shown;

use super::api::{HubFacts, KernelOutput, LegReport, SessionOutput};
use super::{Report, Session, StatusChange};

/// The legs of a session.
#[derive(Default)]
pub(super) struct Legs {
    /// The port of the hub that the site connected to.
    port: Option<u16>,
    /// The legs that the site receives.
    joined: BTreeMap<FeedName, LegId>,
    /// The times of the next attempts on legs that it lost.
    offer_at: BTreeSet<Micros>,
    /// The operator was notified that the site's datagrams get no answer.
    told_unanswered: bool,
    flood: Flood,
}

impl Legs {
    pub(super) fn at(port: Option<u16>) -> Self {
        Self { port, ..Self::default() }
    }

    pub(super) fn due(&self) -> Option<Micros> {
        self.offer_at.first().copied().into_iter().chain(self.flood.due()).min()
    }
}

impl Session {
    pub(super) fn leg_joined(
        &mut self,
        leg: LegId,
        after: Sequence,
        reception: Option<Reception>,
        hub: &dyn HubFacts,
    ) {
        if is_catch_up(leg) {
            return self.report(Report::CatchUp { leg, hears: true });
        }
        self.follow_legs();
        let Some(feed) = hub.feed_of(leg).filter(|_| self.identity.site.is_some()) else { return };
        self.legs.joined.insert(feed.clone(), leg);
        self.change(StatusChange::Joined(feed.clone(), leg));
        let reception = reception.map(|said| Reception {
            buffer_bytes: said.buffer_bytes,
            path: shown(&said.path),
            advice: said.advice.as_deref().map(shown),
        });
        let after = Some(after);
        self.report(Report::Leg(LegReport { feed, leg, state: "joined", after, reason: None, reception }));
    }

    /// A report on a leg that the hub does not have is ignored: it may have ended in between.
    pub(super) fn host_reads(&mut self, reading: HostReading, hub: &dyn HubFacts) {
        if let Some(feed) = hub.feed_of(reading.leg).filter(|_| self.identity.site.is_some()) {
            self.change(StatusChange::Reads(feed, reading));
        }
    }

    /// Offers the repair channel at the port that the site connected to, if the node receives datagrams there.
    pub(super) fn join_leg(&mut self, now: Now, mut join: Box<LegJoin>, hub: &dyn HubFacts) {
        self.give_port(&mut join, hub);
        self.tell(now, HubInput::JoinLeg(join));
    }

    /// Offers a stream beside the leg, in the same way.
    pub(super) fn catch_up(&mut self, now: Now, mut join: Box<LegJoin>, to: Sequence, hub: &dyn HubFacts) {
        self.give_port(&mut join, hub);
        self.tell(now, HubInput::CatchUp { join, to });
    }

    fn give_port(&self, join: &mut LegJoin, hub: &dyn HubFacts) {
        let port = self.legs.port.filter(|port| hub.hears(*port));
        join.channel = join.channel.take().zip(port).map(|(channel, port)| RepairChannel { port, ..channel });
    }

    pub(super) fn nak(&mut self, leg: LegId, leg_epoch: u64, request: Request) {
        let Some(site) = &self.identity.site else { return };
        if request.unanswered && !std::mem::replace(&mut self.legs.told_unanswered, true) {
            let port = self.legs.port.unwrap_or_default();
            let sentence = format!(
                "site {site}: its requests by UDP get no answer, and repairs of multicast legs go by its session, \
                 which is slower where packets are lost; allow UDP port {port} of the hub in \
                 both directions"
            );
            self.report(Report::Fault { sentence, feed: None, of_site: true });
        }
        self.ask(SessionOutput::Nak { leg, leg_epoch, request });
    }

    /// The origin within the group can't be determined; the operator should know that it happens.
    pub(super) fn forged(&mut self, forged: Forged) {
        if self.identity.site.is_some() {
            self.ask(SessionOutput::Forged(forged));
        }
    }

    pub(super) fn leg_left(&mut self, now: Micros, left: &LegLeft, hub: &dyn HubFacts) {
        if is_catch_up(left.leg) {
            self.ask(SessionOutput::Look);
            return self.report(Report::CatchUp { leg: left.leg, hears: false });
        }
        self.follow_legs();
        // From now on the session itself delivers the products that it slept through.
        self.ask(SessionOutput::Look);
        self.note_leg_left(now, left, hub);
    }

    /// Sleeps through the appends of exactly the feeds that legs deliver.
    pub(super) fn follow_legs(&mut self) {
        for feed in &self.subscribed {
            let left = self.hub.is_left_to_leg(feed);
            self.outputs.push_back(SessionOutput::LeaveToLeg(feed.clone(), left));
        }
    }

    /// Offers lost legs to the site again, and monitors the flood of one.
    pub(super) fn look_at_legs(&mut self, now: Micros) {
        while self.legs.offer_at.first().is_some_and(|at| *at <= now) {
            self.legs.offer_at.pop_first();
            self.ask(SessionOutput::Place);
        }
        if self.legs.flood.due().is_some_and(|due| due <= now) {
            self.ask(SessionOutput::Kernel(KernelOutput::LookAtFlood));
        }
    }

    /// While the flood lasts, the connections retransmit each second to detect its end, and measure again how much
    /// their path carries. No other traffic is on that path. The last check follows a second without loss.
    pub(super) fn look_after_flood(&mut self, now: Micros, resent_segments: u64, waits: bool) {
        if self.legs.flood.due().is_none_or(|due| due > now) {
            return;
        }
        let sight = self.legs.flood.look(now, resent_segments, waits);
        let lasts = matches!(sight, Sight::Flooded | Sight::StillFlooded);
        self.ask(SessionOutput::Kernel(KernelOutput::TryAgainEachSecond(lasts)));
        if matches!(sight, Sight::StillFlooded | Sight::Over) {
            self.ask(SessionOutput::Kernel(KernelOutput::MeasureAnew));
        }
    }

    fn note_leg_left(&mut self, now: Micros, left: &LegLeft, hub: &dyn HubFacts) {
        let Some(site) = self.identity.site.clone() else { return };
        let too_fast_by_hub = hub.is_too_slow(now, &site, left.leg);
        let is_too_slow = left.too_slow == Some(true);
        if is_too_slow || too_fast_by_hub {
            self.legs.flood.ebbs(now);
        }
        let feed = self.forget_joined(left.leg);
        let Some(feed) = feed.or_else(|| hub.feed_of(left.leg)) else { return };
        if too_fast_by_hub {
            return self.offer_again_at(now.plus(TOO_SLOW_REST));
        }
        if is_too_slow {
            self.ask(SessionOutput::Rest(left.leg));
        }
        let state = match left.known_to {
            _ if is_too_slow => "too-slow",
            Some(_) => "left",
            None => "never-heard",
        };
        let (leg, after, reason) = (left.leg, left.known_to, Some(shown(&left.reason)));
        self.report(Report::Leg(LegReport { feed, leg, state, after, reason, reception: None }));
        self.offer_again_at(now.plus(if is_too_slow { TOO_SLOW_REST } else { OFFER_AGAIN }));
    }

    fn forget_joined(&mut self, leg: LegId) -> Option<FeedName> {
        let joined = self.legs.joined.iter().find(|(_, joined)| **joined == leg);
        let feed = joined.map(|(feed, _)| feed.clone())?;
        self.legs.joined.remove(&feed);
        self.change(StatusChange::Left(feed.clone()));
        Some(feed)
    }

    /// Schedules another attempt for a site that lost its leg, if the plan still has it there by then.
    fn offer_again_at(&mut self, at: Micros) {
        self.legs.offer_at.insert(at);
    }
}

/// The time after which a site that was too slow for a leg may try again, if the plan still has it there: links are
/// repaired.
pub const TOO_SLOW_REST: Micros = Micros::from_secs(300);

/// Long compared with the time in which a site finds a leg silent, so that a broken group costs little.
const OFFER_AGAIN: Micros = Micros::from_secs(15);
