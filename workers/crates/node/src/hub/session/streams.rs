//! The data connections of a session: how many there are to be, and what becomes of them.
use std::collections::BTreeSet;

use downburst_model::{FeedName, Micros, SiteName};
use downburst_session::{Classes, DATA_STREAMS, HubInput, LIVENESS_LIMIT, Ride, StreamId, StreamPlan};

use super::{Member, Session};
use crate::hub::circuits::Way;
use crate::hub::data::{Attached, DataLinks, Woken};
use crate::hub::lock;
use crate::hub::outbound::OUT_LIMIT_BYTES;
use crate::hub::session_socket::SessionSocket;
use downburst_hub::PathFacts;
use downburst_hub::pace_bps;
use downburst_hub::{Measured, Setting, StreamPolicy};

/// What a session keeps of its data connections; a site without any costs no more than this.
#[derive(Default)]
pub(super) struct Streams {
    pub(super) links: DataLinks,
    /// Once the site is let in.
    policy: Option<StreamPolicy>,
    plan: StreamPlan,
    sent_bytes: u64,
    /// The circuits that feeds ride on.
    ways: Vec<Way>,
    /// When to ask the kernel of the connections again.
    ask_at: Micros,
}

impl Streams {
    /// Counts what a socket took.
    pub(super) fn sent(&mut self, bytes: usize) {
        self.sent_bytes = self.sent_bytes.saturating_add(bytes as u64);
    }
}

impl Session {
    /// The site was admitted: its share follows from the operator's number and the results of its last session.
    pub(super) fn begin_streams(&mut self) {
        let Some(site) = self.member.as_ref().map(|member| member.site.clone()) else { return };
        let setting = self.setting(&site);
        self.streams.policy = Some(StreamPolicy::new(setting, self.hub.roster.learnt(&site)));
        self.plan_streams();
        self.look_at_path();
    }

    /// The products of a feed take the circuit that its plan names as long as that answers, else the path of
    /// the first connection.
    pub(super) fn look_at_path(&mut self) {
        let Some(site) = self.member.as_ref().map(|member| member.site.clone()) else { return };
        let ways = self.hub.ways_to(&site);
        if ways == self.streams.ways || self.streams.policy.is_none() {
            return;
        }
        for way in ways.iter().filter(|way| !self.streams.ways.contains(way)) {
            let feeds = names(&way.feeds);
            tracing::info!(site = site.as_str(), to = way.path.to, feeds, "products go by a circuit");
        }
        for way in self.streams.ways.iter().filter(|way| !ways.contains(way)) {
            let feeds = names(&way.feeds);
            tracing::info!(site = site.as_str(), to = way.path.to, feeds, "products leave a circuit");
        }
        self.streams.ways = ways;
        self.plan_streams();
    }

    /// The operator set the site's number, or took it back.
    pub(super) fn pin_streams(&mut self, pinned: Option<usize>) {
        let setting = Setting::of(pinned, self.hub.start.data_connections);
        if let Some(policy) = &mut self.streams.policy {
            policy.set(setting);
        }
        self.plan_streams();
    }

    /// When to look at the data connections again.
    pub(super) fn streams_due(&self) -> Option<Micros> {
        self.streams.policy.as_ref()?.due(self.machine.waiting().0 > 0)
    }

    /// Looks, if it is time; true if the machine was told something.
    pub(super) fn look_at_streams(&mut self, socket: &SessionSocket) -> bool {
        let now = self.hub.clock.monotonic();
        self.ask_kernel(now, socket);
        if let Some(stream) = self.streams.links.stuck(now, LIVENESS_LIMIT) {
            self.streams.links.drop_link(stream);
            let reason = "the site did not read the data sent to it".to_owned();
            self.tell(HubInput::StreamClosed { stream, reason });
            return true;
        }
        if self.streams_due().is_none_or(|due| due > now) {
            return false;
        }
        let measured = self.measured(now, socket);
        if let Some(policy) = &mut self.streams.policy {
            policy.measure(measured);
        }
        self.plan_streams()
    }

    pub(super) fn draw_ticket(&mut self, stream: StreamId) {
        let Some(member) = &self.member else { return };
        let now = self.hub.clock.monotonic();
        if let Some(ticket) = self.hub.roster.draw_ticket(now, &member.handle.commands, stream) {
            self.tell(HubInput::Ticket { stream, ticket });
        }
    }

    /// A connection showed a ticket of this session.
    pub(super) fn attach(&mut self, attached: Attached) {
        let stream = attached.stream;
        self.streams.links.add(attached);
        self.pace_streams();
        self.tell(HubInput::StreamOpened(stream));
        self.tell(HubInput::Room { stream, bytes: OUT_LIMIT_BYTES });
    }

    pub(super) fn close_stream(&mut self, stream: StreamId) {
        self.streams.links.close(self.hub.clock.monotonic(), stream);
    }

    pub(super) fn data_moved(&mut self, woken: Woken) {
        match woken {
            Woken::Taken(stream, taken) => {
                self.streams.links.taken(self.hub.clock.monotonic(), stream, &taken);
                if taken.bytes > 0 {
                    self.streams.sent(taken.bytes);
                    self.tell(HubInput::Room { stream, bytes: taken.bytes });
                }
            }
            Woken::Spoke(stream) => self.tell(HubInput::Bytes { stream, bytes: bytes::Bytes::new() }),
            Woken::Ended(stream, reason) => self.tell(HubInput::StreamClosed { stream, reason }),
            Woken::Closed => {}
        }
    }

    pub(super) fn count_streams(&self, more: isize) {
        if let Some(member) = &self.member {
            let mut status = member.handle.change();
            status.streams.open = status.streams.open.saturating_add_signed(more);
        }
    }

    pub(super) fn stream_closed(&self, stream: StreamId, reason: &str) {
        self.count_streams(-1);
        if let Some(member) = &self.member {
            tracing::info!(
                site = member.site.as_str(),
                stream = stream.0,
                "a data connection ended: {reason}"
            );
        }
    }

    /// What helped this time helps the site's next session from its first second.
    pub(super) fn keep_learnt(&self, member: &Member) {
        if let Some(policy) = &self.streams.policy {
            self.hub.roster.learn(&member.site, policy.learnt());
        }
    }

    /// Asks the kernel, if it is time. The agent gets the result with the next change, or in its turn: no
    /// line is due to this alone.
    fn ask_kernel(&mut self, now: Micros, socket: &SessionSocket) {
        let Some(member) = self.member.as_ref().filter(|_| self.streams.ask_at <= now) else { return };
        let every = socket.path_facts().into_iter().chain(self.streams.links.path_facts());
        lock(&member.handle.status).path = every.reduce(PathFacts::with);
        self.streams.ask_at = now.plus(BETWEEN_QUESTIONS);
    }

    fn setting(&self, site: &SiteName) -> Setting {
        let pinned = self.hub.roster.site(site).and_then(|line| line.data_connections);
        Setting::of(pinned, self.hub.start.data_connections)
    }

    fn measured(&self, at: Micros, socket: &SessionSocket) -> Measured {
        let clock = self.member.as_ref().and_then(|member| lock(&member.handle.status).clock);
        let (waiting_bytes, waiting_classes) = self.machine.waiting();
        let line = self.member.as_ref().and_then(|member| self.hub.roster.site(&member.site));
        Measured {
            at,
            round_trip: path(clock.map(|clock| Micros(clock.round_trip_us)), socket.round_trip()),
            sent_bytes: self.streams.sent_bytes,
            waiting_bytes,
            waiting_classes,
            bound_bps: line.and_then(|line| pace_bps(&line, self.hub.clock.wall())),
        }
    }

    /// Tells the machine of a plan that changed, and people why.
    fn plan_streams(&mut self) -> bool {
        let now = self.hub.clock.monotonic();
        let Some(policy) = &self.streams.policy else { return false };
        let (routed, decision) = (policy.plan(now), policy.decision().clone());
        let plan = self.spread(routed);
        if let Some(member) = &self.member {
            let mut status = member.handle.change();
            if status.streams.planned != decision.count {
                tracing::info!(
                    site = member.site.as_str(),
                    count = decision.count,
                    "data connections: {}",
                    decision.reason
                );
            }
            status.streams.planned = decision.count;
            status.streams.reason = decision.reason;
        }
        if self.streams.plan == plan {
            return false;
        }
        self.streams.plan.clone_from(&plan);
        self.tell(HubInput::PlanStreams(plan));
        self.pace_streams();
        true
    }

    /// Each path gets the connections that the site needs on one, as far as the limit goes; a circuit has one
    /// at least, and the routed path none when all feeds ride circuits.
    fn spread(&self, routed: Vec<Classes>) -> StreamPlan {
        let ways = &self.streams.ways;
        let all_ride =
            self.member.as_ref().and_then(|member| self.hub.roster.site(&member.site)).is_some_and(|line| {
                line.subscriptions.iter().all(|item| ways.iter().any(|way| way.feeds.contains(&item.feed)))
            });
        let paths = ways.len() + usize::from(!all_ride);
        let each = routed.len().min(DATA_STREAMS / paths.max(1)).max(1);
        let ride = |way: &Way| Ride {
            path: way.path.clone(),
            feeds: way.feeds.clone(),
            streams: vec![Classes::all(); each],
        };
        let left = if all_ride { 0 } else { DATA_STREAMS.saturating_sub(each * ways.len()) };
        let routed = routed.into_iter().take(left).collect();
        StreamPlan { routed, rides: ways.iter().map(ride).collect() }
    }

    /// Those on a circuit that the kernel does not shape share its rate evenly.
    fn pace_streams(&self) {
        for way in &self.streams.ways {
            if let Some(paced_bps) = way.paced_bps {
                let takes = |stream| self.machine.stream_path(stream) == Some(&way.path);
                self.streams.links.pace(paced_bps, takes);
            }
        }
    }
}

fn names(feeds: &BTreeSet<FeedName>) -> String {
    feeds.iter().map(FeedName::as_str).collect::<Vec<_>>().join(", ")
}

/// The round trip of the path. The clock's exchange also waits behind products, in buffers and for a
/// processor of either end, which more connections don't shorten; the kernel's measurement does not. Where
/// the kernel has none, the clock's has to do.
fn path(clock: Option<Micros>, kernel: Option<Micros>) -> Option<Micros> {
    clock.map(|clock| kernel.map_or(clock, |kernel| kernel.min(clock)))
}

/// The clock exchange wakes a session as often.
const BETWEEN_QUESTIONS: Micros = Micros(5_000_000);
