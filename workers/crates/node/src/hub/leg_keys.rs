//! The keys of one leg: which sites have them, when another one is made, and who is told.
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use downburst_model::{FeedName, LegId, Machine as _, Micros, Now, SiteName, WallMicros};
use downburst_session::NextKey;
use downburst_vcmtp::{
    Cipher, LegKey, Rotation, RotationInput, RotationOutput, Sender, SenderInput, SigningSeed, Urgency,
};

use super::roster::{Command, Handle};
use super::{Hub, lock};

/// Drives the rotation of a leg's keys, in the leg's thread.
pub(super) struct LegKeys {
    feed: FeedName,
    leg: LegId,
    leg_epoch: u64,
    rotation: Rotation,
    shared: SharedKeys,
    /// The credentials under which each site was given a key: a right may end with one of them. If it did,
    /// the deadline for the site's exclusion, which may be moved forward.
    told: BTreeMap<SiteName, BTreeMap<String, Option<Urgency>>>,
    looked: Micros,
}

/// What a joining site is given, seen from outside the thread.
pub(super) type SharedKeys = Arc<Mutex<CurrentKeys>>;

/// The keys a datagram may be sealed with at the moment.
pub(super) struct CurrentKeys {
    in_use: LegKey,
    next: Option<LegKey>,
}

/// What the rest of the hub tells a leg's keys.
pub(super) enum KeyCommand {
    /// A site was given the current keys.
    Told { site: SiteName, credential: String },
    /// A session goes on with another credential.
    Renewed { site: SiteName, former: String, credential: String },
    /// A site has a key that was told ahead.
    Taken { site: SiteName, key_id: u8 },
    /// Sites, or what they may have, changed.
    LookAtRights,
}

/// The key a leg begins with. Every start of a sender draws one.
pub(super) fn first_key() -> Result<LegKey, String> {
    let secret = draw().map_err(|error| format!("no random key: {error}"))?;
    Ok(LegKey { id: 1, secret, cipher: cipher() })
}

/// What the sender signs with. It stays in the process; sites get the public half in their sessions.
pub(super) fn signing_seed() -> Result<SigningSeed, String> {
    draw().map(SigningSeed).map_err(|error| format!("no random signing key: {error}"))
}

impl CurrentKeys {
    /// The latest key, and the one in use while that is another.
    pub(super) fn for_join(&self) -> (LegKey, Option<LegKey>) {
        match &self.next {
            Some(next) => (next.clone(), Some(self.in_use.clone())),
            None => (self.in_use.clone(), None),
        }
    }
}

impl LegKeys {
    pub(super) fn new(now: Micros, feed: FeedName, (leg, leg_epoch): (LegId, u64), key: LegKey) -> Self {
        let shared = Arc::new(Mutex::new(CurrentKeys { in_use: key.clone(), next: None }));
        let rotation = Rotation::new(now, key);
        Self { feed, leg, leg_epoch, rotation, shared, told: BTreeMap::new(), looked: now }
    }

    pub(super) fn shared(&self) -> SharedKeys {
        Arc::clone(&self.shared)
    }

    pub(super) fn take(&mut self, hub: &Hub, command: KeyCommand) {
        let now = hub.clock.now();
        match command {
            KeyCommand::Told { site, credential } => {
                self.told.entry(site.clone()).or_default().insert(credential, None);
                self.rotation.handle(now, RotationInput::Told(site));
            }
            KeyCommand::Renewed { site, former, credential } => {
                if let Some(told) = self.told.get_mut(&site).filter(|told| told.contains_key(&former)) {
                    told.insert(credential, None);
                }
            }
            KeyCommand::Taken { site, key_id } => {
                self.rotation.handle(now, RotationInput::Confirmed { site, key_id });
            }
            KeyCommand::LookAtRights => self.look_at_rights(hub, now),
        }
    }

    /// Does what the rotation asks for, and looks now and then at what nobody tells: credentials end, sessions die.
    pub(super) fn drive(&mut self, hub: &Hub, sender: &mut Sender) {
        let now = hub.clock.now();
        if self.look_due() <= now.monotonic {
            self.look_at_rights(hub, now);
            self.rotation.handle(now, RotationInput::Sealed(sender.stats().datagrams));
        }
        while let Some(output) = self.rotation.poll(now) {
            match output {
                RotationOutput::Draw => {
                    let live = self.readers(hub, now.wall).into_keys().collect();
                    let secret = draw().inspect_err(|error| tracing::warn!("no random key: {error}")).ok();
                    self.rotation.handle(now, RotationInput::Drawn { secret, live });
                }
                RotationOutput::Tell(key) => self.tell(hub, now.wall, key),
                RotationOutput::Use(key) => {
                    tracing::info!(leg = self.leg.0, key = key.id, "the leg takes its next key");
                    *lock(&self.shared) = CurrentKeys { in_use: key.clone(), next: None };
                    sender.handle(now, SenderInput::Key(key));
                }
            }
        }
    }

    pub(super) fn deadline(&self) -> Option<Micros> {
        self.rotation.deadline().into_iter().chain([self.look_due()]).min()
    }

    fn look_due(&self) -> Micros {
        let handing_over = self.rotation.keys().1.is_some();
        self.looked.plus(if handing_over { LOOK_IN_HAND_OVER } else { LOOK })
    }

    fn look_at_rights(&mut self, hub: &Hub, now: Now) {
        self.looked = now.monotonic;
        let sessions = hub.roster.sessions();
        let mut barred: Vec<(SiteName, Urgency)> = Vec::new();
        for (site, credentials) in &mut self.told {
            let leaves = self.rotation.is_leaving(site);
            credentials.retain(|sha256, known| {
                let before = std::mem::replace(known, hub.roster.barred(site, sha256, &self.feed, now.wall));
                match *known {
                    None => true,
                    Some(urgency) if before == Some(urgency) => leaves,
                    Some(urgency) => {
                        barred.push((site.clone(), urgency));
                        urgency == Urgency::Soon
                    }
                }
            });
            if !sessions.contains_key(site) {
                self.rotation.handle(now, RotationInput::Gone(site.clone()));
            }
        }
        self.told.retain(|_, credentials| !credentials.is_empty());
        for (site, urgency) in barred {
            tracing::info!(leg = self.leg.0, %site, ?urgency, "a site may not read the leg any more");
            self.rotation.handle(now, RotationInput::Barred { site, urgency });
        }
    }

    /// First for those who join from here on, then for those who are there.
    fn tell(&mut self, hub: &Hub, now: WallMicros, key: LegKey) {
        lock(&self.shared).next = Some(key.clone());
        let next = NextKey { leg: self.leg, leg_epoch: self.leg_epoch, key };
        for (site, handle) in self.readers(hub, now) {
            let _ = handle.commands.send(Command::NextKey(Box::new(next.clone())));
            self.told.entry(site).or_default().insert(handle.credential_sha256.clone(), None);
        }
    }

    /// Connected sites that were offered the leg and may read it.
    fn readers(&self, hub: &Hub, now: WallMicros) -> BTreeMap<SiteName, Handle> {
        let mut sessions = hub.roster.sessions();
        sessions.retain(|site, handle| {
            lock(&handle.status).offered.values().any(|leg| *leg == self.leg)
                && hub.roster.barred(site, &handle.credential_sha256, &self.feed, now).is_none()
        });
        sessions
    }
}

fn draw() -> Result<[u8; 32], getrandom::Error> {
    let mut secret = [0; 32];
    getrandom::fill(&mut secret)?;
    Ok(secret)
}

/// AES where the processor helps with it; elsewhere ChaCha20, which is faster than AES without help.
fn cipher() -> Cipher {
    if has_aes() { Cipher::Aes256Gcm } else { Cipher::ChaCha20Poly1305 }
}

#[cfg(target_arch = "x86_64")]
fn has_aes() -> bool {
    std::arch::is_x86_feature_detected!("aes") && std::arch::is_x86_feature_detected!("pclmulqdq")
}

#[cfg(target_arch = "aarch64")]
fn has_aes() -> bool {
    std::arch::is_aarch64_feature_detected!("aes") && std::arch::is_aarch64_feature_detected!("pmull")
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn has_aes() -> bool {
    false
}

/// A credential that ended is found this soon; the roster tells every other change.
const LOOK: Micros = Micros::from_millis(500);

/// A session that died is not waited for longer than this.
const LOOK_IN_HAND_OVER: Micros = Micros::from_millis(100);
