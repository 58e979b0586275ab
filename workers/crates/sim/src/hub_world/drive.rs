use std::collections::BTreeMap;

use downburst_hub::{
    IdentityOutput, KernelOutput, LegInput, ReadRequest, Report, Session, SessionInput, SessionOutput,
};
use downburst_model::{LegId, Machine, Micros, Now};
use downburst_session::{HubInput, StreamId};
use downburst_site::{Input, LegNews};

use super::HubWorld;
use super::hub::Hub;
use super::legs::name_of;
use super::site::Site;

impl HubWorld {
    /// Advances time from deadline to deadline.
    pub(super) fn run_until(&mut self, end: Micros) {
        loop {
            self.work();
            let next = self.deadline().unwrap_or(end).max(self.now);
            self.stuck = if next == self.now { self.stuck + 1 } else { 0 };
            assert!(self.stuck < STUCK_STEPS, "time stands still at {:?}", self.now);
            self.steps += 1;
            if next > end {
                self.now = end;
                return;
            }
            self.now = next;
        }
    }

    /// Does all work that is due now.
    fn work(&mut self) {
        let now = self.clocks();
        let mut rounds = 0;
        while self.work_once(now) {
            rounds += 1;
            assert!(rounds < STUCK_STEPS, "the machines talk for ever at {:?}", self.now);
        }
    }

    fn work_once(&mut self, now: Now) -> bool {
        let mut busy = false;
        for site in &mut self.sites {
            busy |= connect(now, site);
            busy |= carry(now, &self.hub, site);
            busy |= site.carry_data(now, &self.hub);
            site.store(now);
            busy |= serve(now, &mut self.hub, site);
            while let Some(output) = site.connection.poll(site.clocks(now)) {
                site.take_output(now, output);
                busy = true;
            }
        }
        let legs: Vec<LegId> = self.hub.legs.keys().copied().collect();
        for leg in legs {
            busy |= self.send_leg(now, leg);
        }
        busy
    }

    fn deadline(&self) -> Option<Micros> {
        let legs = self.hub.legs.values().filter_map(|leg| leg.deadline());
        self.sites.iter().filter_map(Site::deadline).chain(legs).min()
    }
}

fn connect(now: Now, site: &mut Site) -> bool {
    let due = site.calls && site.reachable_at <= now.monotonic;
    if due {
        site.connect(now);
    }
    due
}

/// Delivers arrived bytes and datagrams.
fn carry(now: Now, hub: &Hub, site: &mut Site) -> bool {
    let mut busy = false;
    while let Some(bytes) = site.down.receive(now.monotonic) {
        site.deliver(now, hub, bytes);
        busy = true;
    }
    while let Some(bytes) = site.up.receive(now.monotonic) {
        hub.tell_grown(now, site);
        site.tell_hub(now, hub, SessionInput::Bytes(bytes));
        busy = true;
    }
    let legs: Vec<LegId> = site.groups.keys().copied().collect();
    for leg in legs {
        while let Some(bytes) = site.groups.get_mut(&leg).and_then(|group| group.receive(now.monotonic)) {
            site.tell(now, Input::Leg(leg, LegNews::Datagrams(vec![bytes.into()])));
            busy = true;
        }
    }
    busy
}

/// Executes the outputs of the hub's session.
pub(super) fn serve(now: Now, hub: &mut Hub, site: &mut Site) -> bool {
    let mut busy = false;
    while let Some(output) = site.served.as_mut().and_then(|served| served.poll(now, hub)) {
        busy = true;
        take_session_output(now, hub, site, output);
    }
    busy
}

fn take_session_output(now: Now, hub: &mut Hub, site: &mut Site, output: SessionOutput) {
    match output {
        SessionOutput::Write { stream: StreamId::FIRST, bytes, .. } => {
            let length = bytes.len() as u64;
            site.down.send(now.monotonic, bytes, length);
        }
        SessionOutput::Write { stream, bytes, .. } => site.send_data(now, stream, bytes),
        SessionOutput::DrawTicket(stream) => site.draw_ticket(now, hub, stream),
        SessionOutput::CloseStream(stream) => site.close_data(stream),
        SessionOutput::Identity(output) => identify(now, hub, site, output),
        SessionOutput::Read(request) => read(now, hub, site, &request),
        SessionOutput::ReadResend { .. } => panic!("nobody asked for a resend"),
        SessionOutput::Watch(_) => {
            site.muted.clear();
            let standing = hub.standing(site);
            site.tell_hub(now, hub, SessionInput::Watched(standing));
        }
        SessionOutput::LeaveToLeg(feed, true) => drop(site.muted.insert(feed)),
        SessionOutput::LeaveToLeg(feed, false) => drop(site.muted.remove(&feed)),
        SessionOutput::Look => hub.tell_grown(now, site),
        SessionOutput::Believe(_) => {
            site.tell_hub(now, hub, SessionInput::Believed(Ok(BTreeMap::new())));
        }
        SessionOutput::FindResends(_) => {
            site.tell_hub(now, hub, SessionInput::Pass(HubInput::Resends(Vec::new())));
        }
        SessionOutput::Arrived => {
            let plan = site.streams.clone();
            site.tell_hub(now, hub, SessionInput::PlanStreams(plan));
            hub.hold_backfill(now, site);
            place(now, hub, site);
        }
        SessionOutput::Place => place(now, hub, site),
        SessionOutput::Nak { leg, request, .. } => {
            if let Some(leg) = hub.legs.get_mut(&leg) {
                leg.machine.handle(now, LegInput::Nak { session: site.session, request, channel: None });
            }
        }
        SessionOutput::KeyTaken(taken) => {
            if let Some(leg) = hub.legs.get_mut(&taken.leg).filter(|it| it.join.leg_epoch == taken.leg_epoch)
            {
                leg.machine.handle(now, LegInput::KeyTaken { site: name_of(site), key_id: taken.key_id });
            }
        }
        SessionOutput::Forged(forged) => {
            panic!("{} sees forgeries where nobody forges: {forged:?}", site.name)
        }
        SessionOutput::RelayLegOpen(_)
        | SessionOutput::RelayLegFailed(_)
        | SessionOutput::RelayDropped { .. } => panic!("{} is no relay", site.name),
        SessionOutput::Kernel(output) => ask_kernel(now, hub, site, &output),
        SessionOutput::Report(report) => take_report(hub, site, report),
        SessionOutput::Close => close(now, site),
        SessionOutput::Rest(_)
        | SessionOutput::Sibling(_)
        | SessionOutput::Circuit { .. }
        | SessionOutput::CircuitHeard { .. }
        | SessionOutput::CircuitProbed(_)
        | SessionOutput::PathProbed(_) => {}
    }
}

/// Answers for a hub that knows every site by its name.
fn identify(now: Now, hub: &Hub, site: &mut Site, output: IdentityOutput) {
    match output {
        IdentityOutput::Check { .. } => {
            let line = hub.lines.get(&name_of(site)).expect("the site has a line").clone();
            let credential_sha256 = String::new();
            site.tell_hub(now, hub, SessionInput::Known { line: Box::new(line), credential_sha256 });
        }
        IdentityOutput::Register { .. } => {
            site.admitted = true;
            site.tell_hub(now, hub, SessionInput::Registered);
        }
        IdentityOutput::Enrol { .. }
        | IdentityOutput::Offer { .. }
        | IdentityOutput::Take { .. }
        | IdentityOutput::Tell { .. }
        | IdentityOutput::NotKept(_) => panic!("{} has the credential that it keeps", site.name),
    }
}

fn read(now: Now, hub: &mut Hub, site: &mut Site, request: &ReadRequest) {
    let log = hub.logs.get_mut(&request.feed).expect("the feed exists");
    let stretch = log.stretch(now.monotonic, &request.feed, request.after, READ_BYTES, &request.filter);
    site.tell_hub(now, hub, SessionInput::Read(stretch));
}

/// Answers for a kernel that knows nothing of the path, and sees no flood.
fn ask_kernel(now: Now, hub: &Hub, site: &mut Site, output: &KernelOutput) {
    match output {
        KernelOutput::MeasurePath => site.tell_hub(now, hub, SessionInput::Path(None)),
        KernelOutput::MeasureRoundTrip => site.tell_hub(now, hub, SessionInput::RoundTrip(None)),
        KernelOutput::LookAtFlood => {
            site.tell_hub(now, hub, SessionInput::Flooded { resent_segments: 0, waits: false });
        }
        KernelOutput::TryAgainEachSecond(_) | KernelOutput::MeasureAnew | KernelOutput::Pace(..) => {}
    }
}

/// Offers a site its planned legs.
fn place(now: Now, hub: &mut Hub, site: &mut Site) {
    let legs: Vec<LegId> = site.plan.values().copied().collect();
    for leg in legs {
        hub.offer(now, site, leg);
    }
}

fn close(now: Now, site: &mut Site) {
    let reason = site.served.as_ref().and_then(Session::reason);
    if let Some(reason) = reason {
        panic!("the hub ends the session of {}: {reason}", site.name);
    }
    site.cut(now, now.monotonic.plus(Micros::from_millis(500)));
}

fn take_report(hub: &mut Hub, site: &mut Site, report: Report) {
    match report {
        Report::Violation { sentence, .. } => panic!("the hub says of {}: {sentence}", site.name),
        Report::Fault { sentence, .. } => panic!("the hub reports of {}: {sentence}", site.name),
        Report::Receipts { items, .. } => {
            for noted in items {
                check_receipt(hub, &noted.receipt);
                let receipt = noted.receipt;
                if receipt.outcome.is_late() {
                    site.oracle.lost(&receipt.key);
                }
                *hub.outcomes.entry((site.index, receipt.key.feed, receipt.outcome)).or_default() += 1;
            }
        }
        Report::Connected
        | Report::Status(_)
        | Report::Settled(..)
        | Report::Frontier(_)
        | Report::Filed(_)
        | Report::Recheck(_)
        | Report::Sent { .. }
        | Report::LateSent(_)
        | Report::Leg(_)
        | Report::CatchUp { .. }
        | Report::Relay(_)
        | Report::Resent(_)
        | Report::Ride { .. }
        | Report::StreamEnded { .. } => {}
    }
}

fn check_receipt(hub: &mut Hub, receipt: &downburst_session::Receipt) {
    use downburst_model::Transport;
    use downburst_session::Outcome;
    if !matches!(receipt.outcome, Outcome::Stored | Outcome::Held) {
        return;
    }
    let log = hub.logs.get(&receipt.key.feed).filter(|log| log.epoch == receipt.key.epoch);
    if let Some(entry) = log.and_then(|log| log.entry(receipt.key.sequence)) {
        assert_eq!((receipt.size, receipt.hub_stored), (entry.info.size, entry.info.stored));
    }
    hub.multicast_receipts += u64::from(receipt.transport == Transport::Multicast);
}

/// The number of steps without progress of time that counts as a busy loop.
const STUCK_STEPS: u32 = 10_000;

/// The approximate size of a read of a log.
const READ_BYTES: usize = 1 << 20;
