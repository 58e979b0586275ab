use std::collections::BTreeMap;

use downburst_hub::{
    CurrentKeys, Leg, LegInput, LegInterface, LegOutput, LegSession, LegSessions, LegSettings, LogRange,
    ProofSecrets, SessionInput,
};
use downburst_model::{Epoch, FeedName, LegId, Machine, Micros, Now, Sequence, SiteName};
use downburst_session::{HubInput, LegJoin, NextKey, is_catch_up};
use downburst_vcmtp::{LegKey, SenderConfig, SigningSeed, Urgency};

use super::HubWorld;
use super::site::Site;

/// One epoch of a multicast leg: the machine that the product itself runs.
pub(super) struct SimLeg {
    pub(super) machine: Leg<()>,
    pub(super) join: LegJoin,
    pub(super) plan: LegPlan,
    keys: CurrentKeys,
    proof_secrets: ProofSecrets,
}

/// The properties of a leg that are the same in all its epochs.
pub(super) struct LegPlan {
    pub(super) leg: LegId,
    pub(super) feed: FeedName,
    pub(super) rate_bps: u64,
    pub(super) repair_window_bytes: u64,
}

impl SimLeg {
    /// Begins a new epoch of a leg, at the log's head.
    pub(super) fn new(now: Micros, plan: LegPlan, life: u64, (epoch, after): (Epoch, Sequence)) -> Self {
        let mut key = LegKey::new(1, [7; 32]);
        key.secret[0] = life as u8;
        let mut sender = SenderConfig::new(plan.leg, life, key.clone(), after, plan.rate_bps);
        sender.repair_window_bytes = plan.repair_window_bytes;
        sender.signing_seed = Some(SigningSeed([life as u8; 32]));
        let interface = LegInterface { mtu_bytes: None, is_circuit: false, is_relayed: false };
        let settings = LegSettings { sender, loss_quantile: 0.5, interface };
        let machine = Leg::new(now, settings, &BTreeMap::new());
        let join = LegJoin {
            leg: plan.leg,
            feed: plan.feed.clone(),
            epoch,
            leg_epoch: life,
            group: "239.1.1.1".to_owned(),
            port: 5_000,
            key: key.clone(),
            key_in_use: None,
            sender_key: machine.sender_key(),
            proof_secret: None,
            pass: None,
            interface: String::new(),
            rate_bps: plan.rate_bps,
            source: None,
            channel: None,
        };
        let proof_secrets = ProofSecrets::new([life as u8; 32]);
        Self { machine, join, plan, keys: CurrentKeys::first(key), proof_secrets }
    }

    /// The data for a site's join now; the leg records that the site has the keys.
    pub(super) fn offer(&mut self, now: Now, site: &Site) -> LegJoin {
        let (key, key_in_use) = self.keys.for_join();
        let secret = self.proof_secrets.of(site.session);
        let told = LegInput::KeysTold { site: name_of(site), credential: String::new() };
        self.machine.handle(now, told);
        let secret_told = Some(secret.clone());
        self.machine.handle(now, LegInput::Reader { session: site.session, secret: secret_told });
        LegJoin { key, key_in_use, proof_secret: Some(Box::new(secret)), ..self.join.clone() }
    }

    pub(super) fn deadline(&self) -> Option<Micros> {
        self.machine.deadline()
    }

    /// The leg's view of the site, while it is connected.
    fn session_of(&self, site: &Site) -> Option<(SiteName, LegSession)> {
        site.served.as_ref()?;
        let session = LegSession {
            session: site.session,
            credential: String::new(),
            offered: site.admitted
                && (is_catch_up(self.plan.leg) || site.plan.values().any(|it| *it == self.plan.leg)),
            hears: site.groups.contains_key(&self.plan.leg),
            path_mtu_bytes: None,
        };
        Some((name_of(site), session))
    }

    /// Lets the leg check its sites: a site that no longer subscribes to the feed may not read the leg.
    fn look(&mut self, now: Now, sites: &[Site]) {
        let open = sites.iter().filter_map(|site| self.session_of(site)).collect();
        let barred = |name: &SiteName, _: &str| {
            let site = sites.iter().find(|site| site.name == name.as_str())?;
            let subscribes = site.subscriptions.iter().any(|it| it.feed == self.plan.feed);
            (!subscribes).then_some(Urgency::Soon)
        };
        self.machine.look(now, &LegSessions { open: &open, barred: &barred });
    }
}

impl HubWorld {
    pub(super) fn send_leg(&mut self, now: Now, id: LegId) -> bool {
        let mut busy = false;
        while let Some(output) = self.hub.legs.get_mut(&id).and_then(|leg| leg.machine.poll(now)) {
            busy = true;
            self.carry_leg(now, id, output);
        }
        busy
    }

    fn carry_leg(&mut self, now: Now, id: LegId, output: LegOutput<()>) {
        let leg = self.hub.legs.get_mut(&id).expect("the leg runs");
        let leg_epoch = leg.join.leg_epoch;
        match output {
            LegOutput::Datagram(bytes) => {
                let bytes = bytes.freeze();
                for group in self.sites.iter_mut().filter_map(|site| site.groups.get_mut(&id)) {
                    group.send(now.monotonic, bytes.clone(), bytes.len() as u64);
                }
            }
            LegOutput::Read(range) => self.read_for_leg(now, id, range),
            LegOutput::Repair { session, packet, payload, .. } => {
                self.pass(now, session, HubInput::Repair { leg: id, leg_epoch, packet, payload });
            }
            LegOutput::Gone { session, packets } => {
                self.pass(now, session, HubInput::PacketsGone { leg: id, leg_epoch, packets });
            }
            LegOutput::Look => leg.look(now, &self.sites),
            LegOutput::Draw => {
                let secret = std::array::from_fn(|_| self.hub.keys.below(256) as u8);
                leg.machine.handle(now, LegInput::Drawn(Some(secret)));
            }
            LegOutput::Keys(keys) => leg.keys = keys,
            LegOutput::TellKey { session, key, .. } => {
                let next = NextKey { leg: id, leg_epoch, key };
                self.pass(now, session, HubInput::NextKey(next));
            }
            LegOutput::TakeOff(straggler) => {
                self.pass(now, straggler.session, HubInput::LeaveLeg(id));
            }
            LegOutput::FirstByte(_)
            | LegOutput::Sent(_)
            | LegOutput::Barred { .. }
            | LegOutput::DatagramBytes(_)
            | LegOutput::Rate(_)
            | LegOutput::Trial(_) => {}
        }
    }

    fn read_for_leg(&mut self, now: Now, id: LegId, range: LogRange) {
        let leg = self.hub.legs.get_mut(&id).expect("the leg runs");
        let log = self.hub.logs.get(&leg.plan.feed).expect("the feed exists");
        let (entries, read_to) = log.read(range.after, range.to, range.limit_bytes);
        for entry in entries {
            if let Some(bytes) = entry.bytes {
                leg.machine.handle(now, LegInput::Product { info: entry.info, bytes });
            }
        }
        leg.machine.handle(now, LegInput::ReadTo(read_to));
    }

    fn pass(&mut self, now: Now, session: u64, input: HubInput) {
        if let Some(site) = self.sites.iter_mut().find(|site| site.session == session) {
            site.tell_hub(now, &self.hub, SessionInput::Pass(input));
        }
    }
}

pub(super) fn name_of(site: &Site) -> SiteName {
    SiteName::parse(&site.name).expect("a legal name")
}
