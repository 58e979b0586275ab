//! The data connections of a session: their number, their paths, and their plan.
use std::collections::BTreeSet;

use downburst_model::{FeedName, Micros, Now, WallMicros};
use downburst_session::{Classes, ClockOffset, DATA_STREAMS, HubInput, Ride, StreamId, StreamPlan};

use crate::pace::pace_bps;
use crate::path_facts::PathFacts;
use crate::stream_policy::{Decision, Measured, Setting, StreamPolicy};

use super::api::{HubFacts, KernelOutput, SessionInput, SessionOutput, Way};
use super::{Report, Session, StatusChange};

/// A session's state of data connections; a site without any costs no more than this.
#[derive(Default)]
pub(super) struct Streams {
    /// Present after the admission.
    policy: Option<StreamPolicy>,
    plan: StreamPlan,
    sent_bytes: u64,
    /// The circuits that feeds use.
    ways: Vec<Way>,
    /// The last comparison of the site's clock.
    clock: Option<ClockOffset>,
    /// The time of the next query to the kernel.
    ask_at: Micros,
    /// The plan is imposed from outside.
    decreed: bool,
    /// The number of the site's TCP profile.
    profiled: Option<usize>,
}

impl Streams {
    pub(super) fn clock_is(&mut self, clock: ClockOffset) {
        self.clock = Some(clock);
    }

    /// The number of connections that helped; the site's next session starts with it.
    pub(super) fn learnt(&self) -> Option<usize> {
        self.policy.as_ref().map(StreamPolicy::learnt)
    }
}

impl Session {
    pub(super) fn move_streams(&mut self, now: Now, input: SessionInput, hub: &dyn HubFacts) {
        match input {
            SessionInput::Taken { stream, bytes } => {
                self.streams.sent_bytes = self.streams.sent_bytes.saturating_add(bytes as u64);
                self.tell(now, HubInput::Room { stream, bytes });
            }
            SessionInput::Spoke(stream) => {
                self.tell(now, HubInput::Bytes { stream, bytes: bytes::Bytes::new() });
            }
            SessionInput::StreamOpened(stream) => self.stream_opened(now, stream),
            SessionInput::StreamClosed { stream, reason } => {
                self.tell(now, HubInput::StreamClosed { stream, reason });
            }
            SessionInput::LookAtPath => self.look_at_path(now, hub),
            SessionInput::PinStreams(pinned) => self.pin_streams(now, pinned, hub),
            SessionInput::ProfileStreams(profiled) => {
                self.streams.profiled = profiled;
                let pinned = self.line(hub).and_then(|line| line.data_connections);
                self.pin_streams(now, pinned, hub);
            }
            SessionInput::PlanStreams(plan) => self.decree_streams(now, plan),
            SessionInput::RoundTrip(round_trip) => self.measured(now, round_trip, hub),
            SessionInput::Path(path) => self.path_is(path),
            SessionInput::Flooded { resent_segments, waits } => {
                self.look_after_flood(now.monotonic, resent_segments, waits);
            }
            _ => {}
        }
    }

    /// Plans the connections of an admitted site from the operator's number and the results of its last session.
    pub(super) fn begin_streams(&mut self, now: Now, hub: &dyn HubFacts) {
        let Some(site) = self.identity.site.clone().filter(|_| !self.streams.decreed) else { return };
        let pinned = hub.line(&site).and_then(|line| line.data_connections);
        let setting = self.setting(pinned);
        self.streams.policy = Some(StreamPolicy::new(setting, hub.learnt(&site)));
        self.plan_streams(now, hub);
        self.look_at_path(now, hub);
    }

    fn setting(&self, pinned: Option<usize>) -> Setting {
        Setting::of(pinned, self.streams.profiled, self.settings.data_connections)
    }

    /// The bytes of the products in the queue, and the rate limit of the site: whether its path limits it.
    pub fn load(&self, wall: WallMicros, hub: &dyn HubFacts) -> (usize, Option<u64>) {
        (self.hub.waiting().0, self.line(hub).and_then(|line| pace_bps(&line, wall)))
    }

    /// The time of the next look at the data connections.
    pub(super) fn streams_due(&self) -> Option<Micros> {
        self.streams.policy.as_ref()?.due(self.hub.waiting().0 > 0)
    }

    /// Queries the kernel, if due.
    pub(super) fn look_at_streams(&mut self, now: Micros) {
        if self.identity.site.is_some() && self.streams.ask_at <= now {
            self.streams.ask_at = now.plus(BETWEEN_QUESTIONS);
            self.ask(SessionOutput::Kernel(KernelOutput::MeasurePath));
        }
        if self.streams_due().is_some_and(|due| due <= now) {
            self.ask(SessionOutput::Kernel(KernelOutput::MeasureRoundTrip));
        }
    }

    /// Takes a connection that presented a ticket of this session.
    fn stream_opened(&mut self, now: Now, stream: StreamId) {
        self.pace_streams();
        self.tell(now, HubInput::StreamOpened(stream));
        self.tell(now, HubInput::Room { stream, bytes: self.settings.room_bytes });
    }

    /// The products of a feed take the circuit that its plan names while that responds, else the path of the first
    /// connection.
    fn look_at_path(&mut self, now: Now, hub: &dyn HubFacts) {
        let Some(site) = self.identity.site.as_ref() else { return };
        let ways = hub.ways_to(site);
        if ways == self.streams.ways || self.streams.policy.is_none() {
            return;
        }
        let ride = |way: &Way, begins| {
            let (to, feeds) = (way.path.to.clone(), names(&way.feeds));
            Report::Ride { to, feeds, begins }
        };
        let begun = ways.iter().filter(|way| !self.streams.ways.contains(way)).map(|way| ride(way, true));
        let ended = self.streams.ways.iter().filter(|way| !ways.contains(way)).map(|way| ride(way, false));
        let reports: Vec<Report> = begun.chain(ended).collect();
        reports.into_iter().for_each(|report| self.report(report));
        self.streams.ways = ways;
        self.plan_streams(now, hub);
    }

    /// Applies the operator's number for the site, or its withdrawal.
    fn pin_streams(&mut self, now: Now, pinned: Option<usize>, hub: &dyn HubFacts) {
        let setting = self.setting(pinned);
        if let Some(policy) = &mut self.streams.policy {
            policy.set(setting);
        }
        self.plan_streams(now, hub);
    }

    fn decree_streams(&mut self, now: Now, plan: StreamPlan) {
        self.streams.decreed = true;
        self.streams.policy = None;
        self.tell(now, HubInput::PlanStreams(plan));
    }

    fn path_is(&mut self, path: Option<PathFacts>) {
        self.change(StatusChange::Path(path));
    }

    fn measured(&mut self, now: Now, round_trip: Option<Micros>, hub: &dyn HubFacts) {
        let measured = self.measurement(now.monotonic, now.wall, round_trip, hub);
        if let Some(policy) = &mut self.streams.policy {
            policy.measure(measured);
        }
        self.plan_streams(now, hub);
    }

    fn measurement(
        &self,
        at: Micros,
        wall: WallMicros,
        round_trip: Option<Micros>,
        hub: &dyn HubFacts,
    ) -> Measured {
        let (waiting_bytes, waiting_classes) = self.hub.waiting();
        let clock = self.streams.clock.map(|clock| Micros(clock.round_trip_us));
        Measured {
            at,
            round_trip: path(clock, round_trip),
            sent_bytes: self.streams.sent_bytes,
            waiting_bytes,
            waiting_classes,
            bound_bps: self.line(hub).and_then(|line| pace_bps(&line, wall)),
        }
    }

    /// Passes a changed plan to the protocol, and reports the reason for people.
    fn plan_streams(&mut self, now: Now, hub: &dyn HubFacts) {
        let Some(policy) = &self.streams.policy else { return };
        let (routed, decision) = (policy.plan(now.monotonic), policy.decision().clone());
        let plan = self.spread(routed, hub);
        let Decision { count, reason } = decision;
        self.change(StatusChange::Planned(count, reason));
        if self.streams.plan != plan {
            self.streams.plan.clone_from(&plan);
            self.tell(now, HubInput::PlanStreams(plan));
            self.pace_streams();
        }
    }

    /// Each path gets the connections that the site needs on one, up to the limit; a circuit gets at least one, and
    /// the routed path none when all feeds use circuits.
    fn spread(&self, routed: Vec<Classes>, hub: &dyn HubFacts) -> StreamPlan {
        let ways = &self.streams.ways;
        let all_ride = self.line(hub).is_some_and(|line| {
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

    /// Divides the rate of a circuit that the kernel does not shape evenly among its connections.
    fn pace_streams(&mut self) {
        for way in &self.streams.ways {
            if let Some(paced_bps) = way.paced_bps {
                let pace = KernelOutput::Pace(way.path.clone(), paced_bps);
                self.outputs.push_back(SessionOutput::Kernel(pace));
            }
        }
    }
}

fn names(feeds: &BTreeSet<FeedName>) -> String {
    feeds.iter().map(FeedName::as_str).collect::<Vec<_>>().join(", ")
}

/// The round trip of the path. The clock exchange also waits behind products, in buffers and for a processor at
/// either end, which more connections don't shorten; the kernel's measurement does not. Without a measurement of
/// the kernel, that of the clock exchange is used.
fn path(clock: Option<Micros>, kernel: Option<Micros>) -> Option<Micros> {
    clock.map(|clock| kernel.map_or(clock, |kernel| kernel.min(clock)))
}

/// The clock exchange wakes a session at the same interval.
const BETWEEN_QUESTIONS: Micros = Micros(5_000_000);
