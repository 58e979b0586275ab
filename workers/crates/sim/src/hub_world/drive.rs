use downburst_hub::LegInput;
use downburst_model::{LegId, Machine, Micros, Now};
use downburst_session::{HubEvent, HubInput, HubOutput, StreamId};
use downburst_site::{Input, LegNews};

use super::HubWorld;
use super::hub::Hub;
use super::legs::name_of;
use super::site::Site;

impl HubWorld {
    /// Moves from deadline to deadline.
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

    /// Does everything that is due at this moment.
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
            busy |= offer_again(now, &mut self.hub, site);
            busy |= carry(now, site);
            busy |= site.carry_data(now);
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

fn offer_again(now: Now, hub: &mut Hub, site: &mut Site) -> bool {
    let due: Vec<LegId> =
        site.offer_again.iter().filter(|(_, at)| **at <= now.monotonic).map(|(leg, _)| *leg).collect();
    for leg in &due {
        site.offer_again.remove(leg);
        if site.plan.values().any(|planned| planned == leg) {
            hub.offer(now, site, *leg);
        }
    }
    !due.is_empty()
}

/// Brings what has arrived.
fn carry(now: Now, site: &mut Site) -> bool {
    let mut busy = false;
    while let Some(bytes) = site.down.receive(now.monotonic) {
        site.deliver(now, bytes);
        busy = true;
    }
    while let Some(bytes) = site.up.receive(now.monotonic) {
        site.tell_hub(now, HubInput::Bytes { stream: StreamId::FIRST, bytes });
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

/// Does what the hub's session asks.
fn serve(now: Now, hub: &mut Hub, site: &mut Site) -> bool {
    let mut busy = false;
    while let Some(output) = site.served.as_mut().and_then(|served| served.poll(now)) {
        busy = true;
        take_hub_output(now, hub, site, output);
    }
    busy
}

fn take_hub_output(now: Now, hub: &mut Hub, site: &mut Site, output: HubOutput) {
    match output {
        HubOutput::Write { stream: StreamId::FIRST, bytes, .. } => {
            let length = bytes.len() as u64;
            site.down.send(now.monotonic, bytes, length);
        }
        HubOutput::Write { stream, bytes, .. } => site.send_data(now, stream, bytes),
        HubOutput::DrawTicket(stream) => site.draw_ticket(now, stream),
        HubOutput::CloseStream(stream) => site.close_data(stream),
        HubOutput::Authenticate(_) => admit(now, hub, site),
        HubOutput::Read { feed, after, limit_bytes, filter, .. } => {
            let log = hub.logs.get_mut(&feed).expect("the feed exists");
            let stretch = log.stretch(now.monotonic, &feed, after, limit_bytes, &filter);
            site.tell_hub(now, HubInput::Stretch(stretch));
        }
        HubOutput::FindTime { feed, time } => {
            let after = hub.logs.get(&feed).expect("the feed exists").find(time);
            site.tell_hub(now, HubInput::FoundTime { feed, after });
        }
        HubOutput::ReadResend { .. } => panic!("nobody asked for a resend"),
        HubOutput::Event(event) => take_hub_event(now, hub, site, event),
        HubOutput::Close => site.cut(now, now.monotonic.plus(Micros::from_millis(500))),
    }
}

fn admit(now: Now, hub: &mut Hub, site: &mut Site) {
    let name = name_of(site);
    let subscriptions = site.subscriptions.clone();
    site.tell_hub(now, HubInput::Admit { site: name, subscriptions });
    site.admitted = true;
    let plan = site.streams.clone();
    site.tell_hub(now, HubInput::PlanStreams(plan));
    hub.tell_feeds(now, site);
    let legs: Vec<LegId> = site.plan.values().copied().collect();
    for leg in legs {
        hub.offer(now, site, leg);
    }
}

fn take_hub_event(now: Now, hub: &mut Hub, site: &mut Site, event: HubEvent) {
    match event {
        HubEvent::Violation(sentence) => panic!("the hub says of {}: {sentence}", site.name),
        HubEvent::Dead => panic!("the hub takes {} for dead", site.name),
        HubEvent::Nak { leg, request, .. } => {
            if let Some(leg) = hub.legs.get_mut(&leg) {
                leg.machine.handle(now, LegInput::Nak { session: site.session, request, channel: None });
            }
        }
        HubEvent::KeyTaken(taken) => {
            if let Some(leg) = hub.legs.get_mut(&taken.leg).filter(|it| it.join.leg_epoch == taken.leg_epoch)
            {
                leg.machine.handle(now, LegInput::KeyTaken { site: name_of(site), key_id: taken.key_id });
            }
        }
        HubEvent::Forged(forged) => panic!("{} sees forgeries where nobody forges: {forged:?}", site.name),
        HubEvent::LegLeft(left) => {
            site.offer_again.insert(left.leg, now.monotonic.plus(Micros::from_secs(1)));
        }
        HubEvent::Receipts { items, .. } => {
            for receipt in items {
                check_receipt(hub, &receipt);
            }
        }
        HubEvent::Hello(_)
        | HubEvent::FirstByte { .. }
        | HubEvent::Sent { .. }
        | HubEvent::Filed(_)
        | HubEvent::HeartbeatOut(_)
        | HubEvent::CredentialOffered(_)
        | HubEvent::CredentialShown(_)
        | HubEvent::TrainSent(_)
        | HubEvent::Resent(_)
        | HubEvent::ResentRejected(_)
        | HubEvent::Late(_)
        | HubEvent::Circuit(_)
        | HubEvent::LegJoined { .. }
        | HubEvent::StreamOpened(_)
        | HubEvent::StreamClosed { .. }
        | HubEvent::Frontier(_) => {}
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

/// How often the machines may speak without time passing before that counts as a busy loop.
const STUCK_STEPS: u32 = 10_000;
