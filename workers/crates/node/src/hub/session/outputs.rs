//! Carries out the outputs of a session's machine.
use bytes::Bytes;
use downburst_hub::{KernelOutput, PathFacts, SessionInput, SessionOutput};
use downburst_model::LegId;
use downburst_session::{Forged, HubInput, KeyTaken, Purpose, StreamId};
use downburst_vcmtp::Request;

use super::Task;
use crate::hub::connections::counted::Counted;
use crate::hub::connections::data;
use crate::hub::feeds::sequence_checks;
use crate::hub::lock;

impl Task {
    pub(super) fn carry_out(&mut self, output: SessionOutput) {
        match output {
            SessionOutput::Write { stream, bytes, purpose } => self.write(stream, bytes, &purpose),
            SessionOutput::Report(report) => self.report(report),
            SessionOutput::Read(request) => self.read(request),
            SessionOutput::Look => self.tell_grown(),
            SessionOutput::LeaveToLeg(feed, left) => self.watched.feeds.leave_to_leg(&feed, left),
            SessionOutput::Kernel(output) => self.ask_kernel(output),
            SessionOutput::Identity(output) => self.identify(output),
            SessionOutput::DrawTicket(stream) => self.draw_ticket(stream),
            SessionOutput::CloseStream(stream) => {
                self.outgoing.links.close(self.hub.clock.monotonic(), stream);
            }
            SessionOutput::Close => self.outgoing.close(self.hub.clock.monotonic()),
            SessionOutput::Watch(subscribed) => {
                let watched = self.watched.subscribe(&subscribed, &self.hub.feeds);
                self.tell(SessionInput::Watched(watched));
            }
            SessionOutput::ReadResend { resend, feed, after, to, limit_bytes } => {
                self.read_resend(resend, feed, (after, to), limit_bytes);
            }
            SessionOutput::Sibling(output) => self.exchange(&output),
            SessionOutput::FindResends(lines) => self.find_resends(&lines),
            SessionOutput::Believe(hello) => {
                let believed = sequence_checks::check(&self.hub, &hello);
                self.tell(SessionInput::Believed(believed));
            }
            SessionOutput::Arrived => self.arrived(),
            SessionOutput::Place => self.place(false),
            SessionOutput::Rest(leg) => {
                if let Some(site) = self.session.site() {
                    self.hub.let_rest(site, leg);
                }
            }
            SessionOutput::Nak { leg, leg_epoch, request } => self.nak(leg, leg_epoch, request),
            SessionOutput::Forged(forged) => self.forged(forged),
            SessionOutput::KeyTaken(taken) => self.key_taken(taken),
            output @ (SessionOutput::RelayLegOpen(_)
            | SessionOutput::RelayLegFailed(_)
            | SessionOutput::RelayDropped { .. }) => self.relay_said(output),
            output @ (SessionOutput::Circuit { .. }
            | SessionOutput::CircuitHeard { .. }
            | SessionOutput::CircuitProbed(_)) => self.circuit_said(output),
            SessionOutput::PathProbed(probed) => {
                if let Some(site) = self.session.site() {
                    self.hub.path_probed(site, *probed);
                }
            }
        }
    }

    fn circuit_said(&self, output: SessionOutput) {
        let Some(site) = self.session.site() else { return };
        match output {
            SessionOutput::Circuit { lease, said } => self.hub.circuit_said(site, lease, said),
            SessionOutput::CircuitHeard { lease, said } => self.hub.circuit_heard(site, lease, said),
            SessionOutput::CircuitProbed(probed) => self.hub.circuit_probed(site, *probed),
            _ => {}
        }
    }

    fn write(&mut self, stream: StreamId, bytes: Bytes, purpose: &Purpose) {
        let (now, length) = (self.hub.clock.monotonic(), bytes.len());
        self.outgoing.push(now, stream, bytes);
        match purpose {
            Purpose::Control | Purpose::Relayed => {}
            Purpose::Product { feed, leg } => self.hub.counters.session_bytes(feed, *leg, length, false),
            Purpose::Repair { leg } => {
                let feed = lock(&self.hub.legs.plans).feed_of(*leg);
                if let Some(feed) = feed {
                    self.hub.counters.session_bytes(&feed, *leg, length, true);
                }
            }
        }
    }

    fn draw_ticket(&mut self, stream: StreamId) {
        let Some(member) = &self.member else { return };
        let now = self.hub.clock.monotonic();
        if let Some(ticket) = self.hub.roster.draw_ticket(now, &member.handle.commands, stream) {
            self.tell(SessionInput::Pass(HubInput::Ticket { stream, ticket }));
        }
    }

    /// Holds backfill that others may lack as well before anything of it is read, and offers the legs.
    fn arrived(&mut self) {
        let site = self.session.site().cloned();
        let holds = site.map(|site| self.hub.holds_of(&site)).unwrap_or_default();
        holds.into_iter().for_each(|hold| self.tell(SessionInput::Pass(hold)));
        self.place(true);
    }

    fn place(&self, arrives: bool) {
        if let (Some(site), Some(member)) = (self.session.site(), &self.member) {
            self.hub.place_site(site, &member.handle);
            if arrives {
                self.hub.offer_circuits(site, &member.handle);
                self.hub.look_at_relays();
            }
        }
    }

    fn nak(&self, leg: LegId, leg_epoch: u64, request: Request) {
        let Some(member) = &self.member else { return };
        if let Some(leg) = lock(&self.hub.legs.plans).find(leg) {
            leg.nak(member.handle.serial, leg_epoch, request);
        }
    }

    fn forged(&self, forged: Forged) {
        let Some(site) = self.session.site() else { return };
        tracing::warn!(leg = forged.leg.0, %site, "a member of the leg's group forges datagrams");
        if let Some(leg) = lock(&self.hub.legs.plans).find(forged.leg) {
            leg.forged(forged.leg_epoch);
        }
    }

    fn key_taken(&self, taken: KeyTaken) {
        let Some(site) = self.session.site() else { return };
        if let Some(leg) = lock(&self.hub.legs.plans).find(taken.leg) {
            leg.key_taken(site, &taken);
        }
    }

    /// Passes on news of a relay.
    fn relay_said(&self, output: SessionOutput) {
        let (Some(relay), Some(member)) = (self.session.site(), &self.member) else { return };
        let session = member.handle.serial;
        match output {
            SessionOutput::RelayLegOpen(open) => self.hub.relay_leg_opened(relay, session, open),
            SessionOutput::RelayLegFailed(failed) => self.hub.relay_leg_failed(relay, session, &failed),
            SessionOutput::RelayDropped { leg, datagrams } => self.hub.relay_dropped(relay, leg, datagrams),
            _ => {}
        }
    }

    fn ask_kernel(&mut self, output: KernelOutput) {
        match output {
            KernelOutput::MeasurePath => {
                let facts = self.path_facts();
                self.tell(SessionInput::Path(facts));
            }
            KernelOutput::MeasureRoundTrip => {
                let round_trip = self.socket.round_trip();
                self.tell(SessionInput::RoundTrip(round_trip));
            }
            KernelOutput::LookAtFlood => {
                let resent_segments = self.path_facts().map_or(0, |facts| facts.resent_segments);
                let waits = self.connections().any(Counted::waits_to_resend);
                self.tell(SessionInput::Flooded { resent_segments, waits });
            }
            KernelOutput::TryAgainEachSecond(each_second) => {
                self.connections().for_each(|it| it.try_again_each_second(each_second));
            }
            KernelOutput::MeasureAnew => self.connections().for_each(Counted::measure_anew),
            KernelOutput::Pace(path, rate_bps) => {
                let on_path = |stream| self.session.stream_path(stream) == Some(&path);
                let shares = self.outgoing.links.shares(rate_bps, on_path);
                shares.for_each(|(socket, share_bps)| socket.get_ref().0.pace(share_bps));
            }
        }
    }

    fn path_facts(&self) -> Option<PathFacts> {
        self.connections().filter_map(Counted::path_facts).reduce(PathFacts::with)
    }

    fn connections(&self) -> impl Iterator<Item = &Counted> {
        std::iter::once(self.socket.connection()).chain(data::connections(&self.outgoing.links))
    }

    /// Cleans up after a session.
    pub(super) fn leave(&self) {
        if let (Some(site), Some(member)) = (self.session.site(), &self.member) {
            let serial = member.handle.serial;
            if let Some(count) = self.session.learnt() {
                self.hub.roster.learn(site, count);
            }
            for (feed, epoch, settled) in self.session.settled() {
                self.hub.figures.backlogs.stands(site, feed, (epoch, settled));
            }
            self.hub.sessions.late_share.forget(serial);
            self.hub.probes_gone(serial);
            self.hub.legs.channels.forget(serial);
            lock(&self.hub.legs.catch_ups).gone(serial);
            lock(&self.hub.sessions.tcp_profiles).gone(serial);
            lock(&self.hub.sessions.resends_left).keep(site, self.session.resends_left());
            // After a newer connection's `connected`, the end of this session would mean that the site has left.
            if self.hub.roster.unregister(site, serial) {
                self.hub.sibling_gone(site);
                self.tell_session("closed", self.session.reason());
                self.hub.look_at_relays();
            }
        }
        if let Some(pending) = &self.pending {
            let sentence = self.session.reason().unwrap_or("it was closed by the other side");
            if pending.ended(sentence) && self.session.reason().is_some() {
                self.tell_session("refused", self.session.reason());
            }
        }
    }
}
