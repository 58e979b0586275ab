//! Events of the protocol.
use downburst_model::Now;
use downburst_session::{
    CircuitFault, CircuitHeard, CircuitState, Hello, HubEvent, Late, RelayLegFailed, RelayReport, ResendEnd,
    StreamId, TrainSent,
};

use crate::text::shown;

use super::api::{HubFacts, SessionOutput, SiblingOutput};
use super::{Report, Session, StatusChange};

impl Session {
    pub(super) fn take_event(&mut self, now: Now, event: HubEvent, hub: &dyn HubFacts) {
        match event {
            HubEvent::Hello(hello) => self.said_hello(now, hello, hub),
            HubEvent::FirstByte { key } => {
                let number = key.sequence.0;
                self.first_bytes.insert(key.feed, key.epoch, (number, number), now.wall);
            }
            HubEvent::Sent { key, leg, size, .. } => {
                self.report(Report::Sent { feed: key.feed, leg, products: 1, bytes: size });
            }
            HubEvent::TrainSent(train) => self.train_sent(now, train),
            HubEvent::Resent(end) => self.resent(end),
            HubEvent::ResentRejected(key) => self.report(Report::Recheck(vec![key])),
            HubEvent::Late(late) => self.gave_late(late, hub),
            HubEvent::HeartbeatOut(out) => self.change(StatusChange::HeartbeatOut(out)),
            HubEvent::CredentialOffered(offered) => self.credential_offered(offered),
            HubEvent::CredentialShown(shown) => self.credential_shown(shown),
            HubEvent::LegJoined { leg, after, reception } => self.leg_joined(leg, after, reception, hub),
            HubEvent::LegLeft(left) => self.leg_left(now.monotonic, &left, hub),
            HubEvent::KeyTaken(taken) => self.ask(SessionOutput::KeyTaken(taken)),
            HubEvent::Nak { leg, leg_epoch, request } => self.nak(leg, leg_epoch, request),
            HubEvent::Forged(forged) => self.forged(forged),
            HubEvent::RelayLegOpen(open) => self.ask(SessionOutput::RelayLegOpen(open)),
            HubEvent::RelayLegFailed(failed) => {
                let sentence = shown(&failed.sentence);
                self.ask(SessionOutput::RelayLegFailed(RelayLegFailed { sentence, ..failed }));
            }
            HubEvent::RelayDropped { leg, datagrams } => {
                self.ask(SessionOutput::RelayDropped { leg, datagrams });
            }
            HubEvent::Receipts { clock, items } => self.receipts(now, clock, items, hub),
            HubEvent::Filed(items) => self.filed(now, items, hub),
            HubEvent::Frontier(frontier) => self.frontier(now, frontier, hub),
            HubEvent::SiteClock(clock) => self.change(StatusChange::SiteClock(clock)),
            HubEvent::HostReading(reading) => self.host_reads(reading, hub),
            HubEvent::RelayReport(report) => self.relay_reported(now, report, hub),
            HubEvent::Circuit(state) => self.circuit_said(state),
            HubEvent::CircuitHeard(heard) => self.circuit_heard(heard),
            HubEvent::CircuitProbed(probed) => self.ask(SessionOutput::CircuitProbed(probed)),
            HubEvent::PathProbed(probed) => self.ask(SessionOutput::PathProbed(probed)),
            HubEvent::Sibling(news) => self.ask(SessionOutput::Sibling(SiblingOutput::of(news))),
            HubEvent::StreamOpened(_) => self.change(StatusChange::Streams(1)),
            HubEvent::StreamClosed { stream, reason } => self.stream_ended(stream, reason),
            HubEvent::Violation(sentence) => self.violated(&sentence),
            HubEvent::Dead => self.reason = Some("the site sent nothing in time".to_owned()),
        }
    }

    fn gave_late(&mut self, late: Late, hub: &dyn HubFacts) {
        if self.takes(&late.feed, hub) {
            self.change(StatusChange::Late(late.feed, late.products));
        }
    }

    fn resent(&mut self, end: ResendEnd) {
        if self.identity.site.is_some() {
            self.report(Report::Resent(end));
        }
    }

    fn said_hello(&mut self, now: Now, hello: Hello, hub: &dyn HubFacts) {
        let software = shown(&hello.software);
        self.ask(SessionOutput::Believe(Box::new(hello)));
        self.begin_streams(now, hub);
        self.software = Some(software);
        // The hello follows the admission; before it, the site's program is unknown.
        self.report(Report::Connected);
    }

    fn train_sent(&mut self, now: Now, train: TrainSent) {
        let numbers = (train.first.0, train.last.0);
        self.first_bytes.insert(train.feed.clone(), train.epoch, numbers, now.wall);
        let (products, bytes) = (train.products, train.product_bytes);
        self.report(Report::Sent { feed: train.feed, leg: train.leg, products, bytes });
    }

    /// Ends no session: a relay that reports too often only goes unheard for a while. A site that takes products is no
    /// relay, and has nothing to report.
    fn relay_reported(&mut self, now: Now, report: RelayReport, hub: &dyn HubFacts) {
        let Some(relay) = self.identity.site.as_ref().filter(|_| self.subscribed.is_empty()) else { return };
        let line = self.relay_reports.take(now.monotonic, relay, report, |peer| hub.site_at(peer));
        let claim = self.relay_reports.false_claim(relay);
        if let Some(line) = line {
            self.report(Report::Relay(line));
        }
        if let Some(sentence) = claim {
            self.report(Report::Fault { sentence, feed: None, of_site: false });
        }
    }

    fn circuit_said(&mut self, CircuitState { lease, fault }: CircuitState) {
        self.ask(SessionOutput::Circuit { lease, said: said_of(fault) });
    }

    fn circuit_heard(&mut self, CircuitHeard { lease, fault }: CircuitHeard) {
        self.ask(SessionOutput::CircuitHeard { lease, said: said_of(fault) });
    }

    fn stream_ended(&mut self, stream: StreamId, reason: String) {
        self.change(StatusChange::Streams(-1));
        self.report(Report::StreamEnded { stream, reason });
    }
}

/// A report on a circuit, with texts that can be shown.
fn said_of(fault: Option<CircuitFault>) -> Result<(), CircuitFault> {
    fault.map_or(Ok(()), |CircuitFault { step, sentence, remedy }| {
        Err(CircuitFault { step: shown(&step), sentence: shown(&sentence), remedy: shown(&remedy) })
    })
}
