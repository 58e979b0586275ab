//! A site changes its credential while connections break, both sides are killed between any two steps, disks
//! fail, and the hub is restored from a backup: the site is never locked out, and in the end only its newest
//! credential is valid.
#![allow(clippy::unwrap_used, clippy::panic)] // A test may fail.
use std::collections::{BTreeMap, VecDeque};
use std::convert::Infallible;

use bytes::Bytes;
use downburst_model::*;
use downburst_session::*;

/// A hub's record of credentials, by hash.
#[derive(Clone, Default)]
struct Ledger {
    /// The valid credentials, each with the one that it replaces.
    good: BTreeMap<String, Option<String>>,
}

impl Ledger {
    /// Stores another credential beside the one of the session; it replaces one that was never shown.
    fn keep(&mut self, current: &str, offered: &str) {
        self.show(current);
        self.good.retain(|hash, replaces| hash == offered || replaces.as_deref() != Some(current));
        self.good.entry(offered.to_owned()).or_insert_with(|| Some(current.to_owned()));
    }

    /// The site shows this one: the previous one becomes invalid.
    fn show(&mut self, hash: &str) {
        if let Some(former) = self.good.get_mut(hash).and_then(Option::take) {
            self.good.remove(&former);
        }
    }
}

struct World {
    random: u64,
    now_us: u64,
    ledger: Ledger,
    hub: Option<HubSession>,
    /// The hash with which the session was admitted, or a later one.
    session: Option<String>,
    site: SiteSession,
    disk: Secrets,
    memory: Secrets,
    drawn: u32,
    to_site: VecDeque<Bytes>,
    to_hub: VecDeque<Bytes>,
    backup: Ledger,
    /// The number of times that the site changed its credential since the backup.
    changed: u32,
    /// True once nothing breaks any more.
    calm: bool,
}

impl World {
    fn new(seed: u64) -> Self {
        let secrets = Secrets::new("secret 0".to_owned(), None, None);
        let ledger = Ledger { good: [(hash("secret 0"), None)].into() };
        Self {
            random: seed.wrapping_mul(2).wrapping_add(1),
            now_us: 1,
            backup: ledger.clone(),
            ledger,
            hub: None,
            session: None,
            site: SiteSession::new("test".to_owned(), SiteState::default()),
            disk: secrets.clone(),
            memory: secrets,
            drawn: 0,
            to_site: VecDeque::new(),
            to_hub: VecDeque::new(),
            changed: 0,
            calm: false,
        }
    }

    /// The next random number below `bound` (xorshift64).
    fn below(&mut self, bound: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random % bound
    }

    /// True one time in eight, unless the world is calm.
    fn breaks(&mut self) -> bool {
        !self.calm && self.below(8) == 0
    }

    fn now(&self) -> Now {
        Now { monotonic: Micros(self.now_us), wall: WallMicros(self.now_us as i64) }
    }

    fn connect(&mut self) {
        self.cut();
        let now = self.now();
        let mut hub = HubSession::new("hub".to_owned());
        hub.handle(now, HubInput::Room { stream: StreamId::FIRST, bytes: 1 << 20 });
        self.hub = Some(hub);
        let secret = self.memory.shown().to_owned();
        self.site.handle(now, SiteInput::Connected(Proof::Credential { site: name(), secret }));
    }

    fn cut(&mut self) {
        (self.hub, self.session) = (None, None);
        self.to_site.clear();
        self.to_hub.clear();
        let now = self.now();
        self.site.handle(now, SiteInput::Disconnected);
        while self.site.poll(now).is_some() {}
    }

    fn kill_site(&mut self) {
        self.cut();
        self.memory = Secrets::new(
            self.disk.current().to_owned(),
            self.disk.next().map(str::to_owned),
            self.disk.former().map(str::to_owned),
        );
    }

    /// Restores the backup, unless the site has changed its credential too often since.
    fn restore_hub(&mut self) {
        if self.changed <= 1 {
            self.cut();
            self.ledger = self.backup.clone();
        }
    }

    fn back_up(&mut self) {
        self.backup = self.ledger.clone();
        // The valid credential in the backup may be the one that the site already shows, or the one that it is
        // about to replace.
        self.changed = u32::from(!self.backup.good.contains_key(&hash(self.disk.current())));
    }

    /// Passes one frame to either side, and handles the results.
    fn step(&mut self) {
        let now = self.now();
        self.pump_hub();
        self.pump_site();
        if let Some(bytes) = self.to_hub.pop_front()
            && let Some(hub) = &mut self.hub
        {
            hub.handle(now, HubInput::Bytes { stream: StreamId::FIRST, bytes });
            self.pump_hub();
        } else if let Some(bytes) = self.to_site.pop_front() {
            self.site.handle(now, SiteInput::Bytes { stream: StreamId::FIRST, bytes });
            self.pump_site();
        }
    }

    fn pump_hub(&mut self) {
        let now = self.now();
        while let Some(output) = self.hub.as_mut().and_then(|hub| hub.poll(now)) {
            match output {
                HubOutput::Write { bytes, .. } => self.to_site.push_back(bytes),
                HubOutput::Authenticate(Proof::Credential { secret, .. }) => {
                    self.authenticate(&hash(&secret))
                }
                HubOutput::Event(HubEvent::CredentialOffered(offered)) => self.offered(offered.sha256),
                HubOutput::Event(HubEvent::CredentialShown(shown)) => self.shown(&hash(&shown.secret)),
                HubOutput::Event(HubEvent::Violation(sentence)) => panic!("{sentence}"),
                _ => {}
            }
        }
    }

    fn authenticate(&mut self, hash: &str) {
        let input = if self.ledger.good.contains_key(hash) {
            self.ledger.show(hash);
            self.session = Some(hash.to_owned());
            HubInput::Admit { site: name(), subscriptions: Vec::new() }
        } else {
            let sentence = "not valid here".to_owned();
            HubInput::Refuse(Refused { code: RefusalCode::Credential, sentence })
        };
        let now = self.now();
        if let Some(hub) = &mut self.hub {
            hub.handle(now, input);
        }
    }

    /// The hub may die before it stores the credential, or between that and its answer.
    fn offered(&mut self, sha256: String) {
        let Some(current) = self.session.clone() else { return };
        if self.breaks() {
            return self.cut();
        }
        self.ledger.keep(&current, &sha256);
        if self.breaks() {
            return self.cut();
        }
        let now = self.now();
        if let Some(hub) = &mut self.hub {
            hub.handle(now, HubInput::KeepCredential(CredentialKept { sha256, ends: None }));
        }
    }

    fn shown(&mut self, hash: &str) {
        if !self.ledger.good.contains_key(hash) || self.breaks() {
            return self.cut();
        }
        self.session = Some(hash.to_owned());
        self.ledger.show(hash);
    }

    /// The session's credential expires, once the hub has stored a replacement.
    fn expire(&mut self) {
        let Some(current) = self.session.clone() else { return };
        let is_followed = self.ledger.good.values().any(|replaces| replaces.as_ref() == Some(&current));
        if is_followed && self.ledger.good.remove(&current).is_some() {
            let refused = Refused { code: RefusalCode::Expired, sentence: "has expired".to_owned() };
            let now = self.now();
            if let Some(hub) = &mut self.hub {
                hub.handle(now, HubInput::Refuse(refused));
            }
        }
    }

    fn pump_site(&mut self) {
        let now = self.now();
        while let Some(output) = self.site.poll(now) {
            match output {
                SiteOutput::Write { bytes, .. } => self.to_hub.push_back(bytes),
                SiteOutput::Event(SiteEvent::Welcome { .. }) => {
                    self.memory.let_in();
                    self.save();
                }
                SiteOutput::Event(SiteEvent::Refused(_)) => {
                    assert!(
                        self.memory.refused(),
                        "the site is locked out: it has {:?}",
                        self.disk.current()
                    );
                }
                SiteOutput::Event(SiteEvent::CredentialWanted(wanted)) => self.offer(now, &wanted.of),
                SiteOutput::Event(SiteEvent::CredentialKept(kept)) => self.kept(now, &kept.sha256),
                SiteOutput::Event(SiteEvent::Violation(sentence)) => panic!("{sentence}"),
                _ => {}
            }
        }
    }

    fn offer(&mut self, now: Now, of: &str) {
        let before = self.memory.clone();
        let drawn = &mut self.drawn;
        let draw = || {
            *drawn += 1;
            Ok::<_, Infallible>(format!("secret {drawn}"))
        };
        let sha256 = hash(self.memory.offer(|secret| hash(secret) == of, draw).unwrap());
        if !self.keeps(before) {
            return;
        }
        self.site.handle(now, SiteInput::OfferCredential(CredentialOffered { sha256 }));
    }

    fn kept(&mut self, now: Now, sha256: &str) {
        let before = self.memory.clone();
        let Some(secret) = self.memory.kept(|secret| hash(secret) == sha256).map(str::to_owned) else {
            return;
        };
        if self.keeps(before) {
            self.site.handle(now, SiteInput::ShowCredential(CredentialShown { secret }));
        }
    }

    /// Saves the secrets; if the disk fails, nothing changes.
    fn keeps(&mut self, before: Secrets) -> bool {
        let keeps = !self.breaks();
        if keeps {
            self.save();
        } else {
            self.memory = before;
        }
        keeps
    }

    fn save(&mut self) {
        self.changed += u32::from(self.disk.current() != self.memory.current());
        self.disk = self.memory.clone();
    }

    fn want(&mut self) {
        let now = self.now();
        if let (Some(hub), Some(of)) = (&mut self.hub, self.session.clone()) {
            hub.handle(now, HubInput::WantCredential(CredentialWanted { of }));
        }
    }

    fn play(&mut self) {
        self.now_us += 1;
        match self.below(40) {
            0 => self.cut(),
            1 => self.kill_site(),
            2 => self.back_up(),
            3 => self.restore_hub(),
            4 => self.expire(),
            5..=8 => self.want(),
            _ => self.step(),
        }
        if self.hub.is_none() {
            self.connect();
        }
    }
}

fn name() -> SiteName {
    SiteName::parse("oslo").unwrap()
}

fn hash(secret: &str) -> String {
    format!("hash of {secret}")
}

fn play(seed: u64) {
    let mut world = World::new(seed);
    for _ in 0..2_000 {
        world.play();
    }
    world.calm = true;
    // One attempt for each secret that the site may have.
    for _ in 0..3 {
        world.connect();
        (0..20).for_each(|_| world.step());
        if world.session.is_some() {
            break;
        }
    }
    for _ in 0..3 {
        (0..100).for_each(|_| world.step());
        world.want();
    }
    (0..100).for_each(|_| world.step());
    let good: Vec<&String> = world.ledger.good.keys().collect();
    assert_eq!(good, [&hash(world.disk.current())], "nothing but the newest is good");
    assert!(world.drawn > 20, "credentials were changed");
}

#[test]
fn a_site_is_never_locked_out() {
    let seeds = match std::env::var("DOWNBURST_SEED") {
        Ok(seed) => vec![seed.parse().unwrap()],
        Err(_) => (0..300).collect(),
    };
    for seed in seeds {
        println!(
            "replay: DOWNBURST_SEED={seed} cargo test -p downburst-session --test credentials -- --nocapture"
        );
        play(seed);
    }
}
