//! One session with a site: drives the hub's half of the protocol, and makes all decisions that the protocol leaves
//! open. These are the site's identity, its feeds and their order, the check of its claims, its legs, the number of
//! its data connections, and the share of late products in the hub's uplink.
//!
//! The driver has the sockets, the logs and the other sessions. It polls until `None` after every input and
//! deadline, and answers requests before it polls again. The exceptions are answers that take time: the agent's,
//! and reads of a log that has to be fetched.
mod admission;
mod api;
mod claims;
mod credentials;
mod events;
mod feeds;
mod late;
mod legs;
mod reads;
mod receipts;
mod resends;
mod siblings;
mod status;
mod streams;
mod view;
mod watched;

use std::collections::{BTreeSet, VecDeque};
use std::net::IpAddr;
use std::sync::Arc;

use downburst_model::{Epoch, FeedName, Machine as _, Micros, Now, RangeSet, SiteName};
use downburst_session::{HubInput, HubOutput, HubSession, Refused, ResendLeft, StreamId, StreamPath};

use crate::first_bytes::FirstBytes;
use crate::relays::RelayReports;

use admission::Identity;
use claims::Claims;
use feeds::Feeds;
use late::Late;
use legs::Legs;
use reads::Reads;
use streams::Streams;

pub use api::{
    CredentialAnswer, FeedStanding, HubFacts, IdentityOutput, KernelOutput, LegReport, NotedReceipt,
    ReadFault, ReadRequest, Report, ResendRead, SessionInput, SessionOutput, SessionSettings, SiblingOutput,
    Way,
};
pub use late::live_waits;
pub use legs::TOO_SLOW_REST;
pub use status::{HostStatus, SessionAccount, SessionStatus, StatusChange, StreamStatus};
pub use view::{ProductView, SessionView, WaitingBytes};
pub use watched::{FeedWatch, WatchedFeeds};

/// The session of one site.
pub struct Session {
    /// The protocol.
    hub: HubSession,
    settings: Arc<SessionSettings>,
    outputs: VecDeque<SessionOutput>,
    identity: Identity,
    /// The site's software.
    software: Option<String>,
    /// The reason of its end.
    reason: Option<String>,
    subscribed: BTreeSet<FeedName>,
    feeds: Feeds,
    reads: Reads,
    first_bytes: FirstBytes,
    streams: Box<Streams>,
    late: Late,
    legs: Legs,
    claims: Claims,
    relay_reports: RelayReports,
}

impl Session {
    /// Starts a session on a connection that arrived at `port`.
    pub fn new(now: Now, settings: Arc<SessionSettings>, port: Option<u16>) -> Self {
        let hub = HubSession::new(settings.hub.clone()).speaking(&settings.versions);
        let mut hub = if settings.heartbeats { hub.with_heartbeats() } else { hub };
        hub.handle(now, HubInput::Room { stream: StreamId::FIRST, bytes: settings.room_bytes });
        Self {
            hub,
            settings,
            outputs: VecDeque::new(),
            identity: Identity::default(),
            software: None,
            reason: None,
            subscribed: BTreeSet::new(),
            feeds: Feeds::default(),
            reads: Reads::default(),
            first_bytes: FirstBytes::default(),
            streams: Box::default(),
            late: Late::default(),
            legs: Legs::at(port),
            claims: Claims::default(),
            relay_reports: RelayReports::default(),
        }
    }

    /// The same, of a peer with this address.
    #[must_use]
    pub fn of_peer(self, host: IpAddr) -> Self {
        Self { relay_reports: RelayReports::of(host), ..self }
    }

    /// Takes one input. The resulting outputs wait for [`poll`](Self::poll).
    pub fn handle(&mut self, now: Now, input: SessionInput, hub: &dyn HubFacts) {
        match input {
            SessionInput::Bytes(bytes) => self.tell(now, HubInput::Bytes { stream: StreamId::FIRST, bytes }),
            SessionInput::Pass(input) => self.tell(now, input),
            SessionInput::Grown(standing) => self.grown(now, standing),
            SessionInput::Read(stretch) => self.take_stretch(now, stretch),
            SessionInput::Woken => self.look(now.monotonic),
            SessionInput::Refuse(refused) => self.refuse(now, refused),
            SessionInput::Watched(standing) => self.watched(now, standing, hub),
            SessionInput::ReadFailed(request, fault) => self.read_failed(now.monotonic, request, fault),
            SessionInput::ResendRead(read) => self.resend_is_read(now, read),
            SessionInput::Subscriptions => self.subscriptions_changed(now, hub),
            SessionInput::Ways => self.ways_changed(now, hub),
            SessionInput::Siblings => self.siblings_changed(now, hub),
            SessionInput::Resends => self.find_resends(hub),
            SessionInput::Pace => self.pace(now, hub),
            SessionInput::JoinLeg(join) => self.join_leg(now, join, hub),
            SessionInput::CatchUp(join, to) => self.catch_up(now, join, to, hub),
            SessionInput::PassedOver(receipts) => self.passed_over(now.monotonic, receipts),
            SessionInput::Believed(believed) => self.believed(now, believed),
            input @ (SessionInput::Known { .. }
            | SessionInput::Answered(_)
            | SessionInput::Registered
            | SessionInput::WantCredential
            | SessionInput::TellCredential
            | SessionInput::CredentialTaken(_)) => self.identify(now, input, hub),
            input => self.move_streams(now, input, hub),
        }
    }

    /// The next output, or `None` until the next input or deadline.
    pub fn poll(&mut self, now: Now, hub: &dyn HubFacts) -> Option<SessionOutput> {
        loop {
            if let Some(output) = self.outputs.pop_front() {
                return Some(output);
            }
            match self.hub.poll(now) {
                Some(HubOutput::Write { stream, bytes, purpose }) => {
                    return Some(SessionOutput::Write { stream, bytes, purpose });
                }
                Some(output) => self.take_output(now, output, hub),
                None if self.look_around(now, hub) => {}
                None => return None,
            }
        }
    }

    /// The time of the next work without an input.
    pub fn deadline(&self) -> Option<Micros> {
        let due =
            [self.hub.deadline(), self.feeds.due(), self.streams_due(), self.legs.due(), self.reads.due()];
        due.into_iter().flatten().min()
    }

    /// The site, after admission.
    pub fn site(&self) -> Option<&SiteName> {
        self.identity.site.as_ref()
    }

    /// True if the site currently receives its feeds from another hub.
    pub fn stands_by(&self) -> bool {
        self.identity.stand_by
    }

    /// The site's software, once reported.
    pub fn software(&self) -> Option<&str> {
        self.software.as_deref()
    }

    /// The reason of the session's end, if something is wrong.
    pub fn reason(&self) -> Option<&str> {
        self.reason.as_deref()
    }

    /// Sets the reason of the connection's end, unless there is one already.
    pub fn ends(&mut self, reason: &str) {
        self.reason.get_or_insert_with(|| reason.to_owned());
    }

    /// The feeds that the site requests from this node.
    pub fn subscribed(&self) -> &BTreeSet<FeedName> {
        &self.subscribed
    }

    /// True if a look at the feeds is scheduled anyway: waking the session earlier gains nothing.
    pub fn looks_later(&self) -> bool {
        self.feeds.due().is_some()
    }

    /// The path that a data connection takes, if it has one of its own.
    pub fn stream_path(&self, stream: StreamId) -> Option<&StreamPath> {
        self.hub.stream_path(stream)
    }

    /// The number of data connections that helped, for the site's next session.
    pub fn learnt(&self) -> Option<usize> {
        self.streams.learnt()
    }

    /// The remaining parts of resends at the end of the session.
    pub fn resends_left(&self) -> std::collections::BTreeMap<u64, ResendLeft> {
        self.hub.resends_left()
    }

    /// The site's position in each feed: numbers that it reported as settled and numbers that it was not owed.
    /// Empty for a site on stand-by, which receives its feeds from another hub.
    pub fn settled(&self) -> impl Iterator<Item = (&FeedName, Epoch, RangeSet)> {
        self.hub.settled().filter(|_| !self.identity.stand_by)
    }

    fn tell(&mut self, now: Now, input: HubInput) {
        self.hub.handle(now, input);
    }

    fn ask(&mut self, output: SessionOutput) {
        self.outputs.push_back(output);
    }

    fn report(&mut self, report: Report) {
        self.outputs.push_back(SessionOutput::Report(report));
    }

    fn change(&mut self, change: StatusChange) {
        self.report(Report::Status(change));
    }

    fn refuse(&mut self, now: Now, refused: Refused) {
        self.reason = Some(refused.sentence.clone());
        self.tell(now, HubInput::Refuse(refused));
    }

    fn take_output(&mut self, now: Now, output: HubOutput, hub: &dyn HubFacts) {
        match output {
            HubOutput::Write { stream, bytes, purpose } => {
                self.ask(SessionOutput::Write { stream, bytes, purpose });
            }
            HubOutput::Authenticate(proof) => self.authenticate(now, proof),
            HubOutput::Read { feed, after, filter, .. } => {
                self.ask(SessionOutput::Read(ReadRequest { feed, after, filter, failures: 0 }));
            }
            HubOutput::ReadResend { resend, feed, after, to, limit_bytes } => {
                self.ask(SessionOutput::ReadResend { resend, feed, after, to, limit_bytes });
            }
            HubOutput::FindTime { feed, time } => {
                let after = hub.find_time(&feed, time);
                self.tell(now, HubInput::FoundTime { feed, after });
            }
            HubOutput::Refer(request) => self.ask(SessionOutput::Sibling(SiblingOutput::Refer(request))),
            HubOutput::DrawTicket(stream) => self.ask(SessionOutput::DrawTicket(stream)),
            HubOutput::CloseStream(stream) => self.ask(SessionOutput::CloseStream(stream)),
            HubOutput::Event(event) => self.take_event(now, event, hub),
            HubOutput::Close => self.ask(SessionOutput::Close),
        }
    }

    /// Does due work outside the protocol; true if there is something to poll.
    fn look_around(&mut self, now: Now, hub: &dyn HubFacts) -> bool {
        let told = self.share_late(now, hub);
        self.look_if_due(now.monotonic);
        self.look_at_legs(now.monotonic);
        self.read_again(now.monotonic);
        self.look_at_streams(now.monotonic);
        told || !self.outputs.is_empty()
    }
}
