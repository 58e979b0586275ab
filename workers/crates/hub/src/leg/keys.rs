//! The keys of one leg: the sites that have them, their rotation, and their distribution.
use std::collections::{BTreeMap, BTreeSet};

use downburst_model::{Machine as _, Micros, Now, SiteName};
use downburst_vcmtp::{LegKey, Rotation, RotationInput, RotationOutput, Urgency};

use super::api::{CurrentKeys, LegOutput, LegSession, LegSessions};

/// Drives the rotation of a leg's keys.
#[derive(Debug)]
pub(super) struct Keys {
    rotation: Rotation,
    /// The credentials under which each site received a key: the right to read may end with one of them. If it did,
    /// the urgency of the site's exclusion, which may be raised later.
    told: BTreeMap<SiteName, BTreeMap<String, Option<Urgency>>>,
    looked: Micros,
    /// Rights changed since the last look.
    changed: bool,
    /// Sites that may read the leg, as of the last look.
    readers: BTreeSet<SiteName>,
    /// The key to send to the sessions at the next look.
    telling: Option<LegKey>,
}

/// A request of the key rotation.
pub(super) enum KeyStep {
    /// Look at the sessions.
    Look,
    /// Draw a secret, after a look at the sessions.
    Draw,
    /// Give these keys to sites that join from here on; then look at the present sessions.
    Announce(CurrentKeys),
    /// Pass the next key to the sender.
    Use(LegKey),
}

impl Keys {
    pub(super) fn new(now: Micros, key: LegKey) -> Self {
        Self {
            rotation: Rotation::new(now, key),
            told: BTreeMap::new(),
            looked: now,
            changed: false,
            readers: BTreeSet::new(),
            telling: None,
        }
    }

    /// Records that a site received the current keys.
    pub(super) fn told(&mut self, now: Now, site: SiteName, credential: String) {
        self.told.entry(site.clone()).or_default().insert(credential, None);
        self.rotation.handle(now, RotationInput::Told(site));
    }

    /// Records that a session changed its credential.
    pub(super) fn renewed(&mut self, site: &SiteName, former: &str, credential: String) {
        if let Some(told) = self.told.get_mut(site).filter(|told| told.contains_key(former)) {
            told.insert(credential, None);
        }
    }

    /// Records that a site confirmed a key that was sent in advance.
    pub(super) fn taken(&mut self, now: Now, site: SiteName, key_id: u8) {
        self.rotation.handle(now, RotationInput::Confirmed { site, key_id });
    }

    pub(super) fn rights_changed(&mut self) {
        self.changed = true;
    }

    pub(super) fn drawn(&mut self, now: Now, secret: Option<[u8; 32]>) {
        let live = self.readers.clone();
        self.rotation.handle(now, RotationInput::Drawn { secret, live });
    }

    /// Returns the next step of the rotation. Looks at the sessions from time to time, as no input reports
    /// credentials that end and sessions that die.
    pub(super) fn poll(&mut self, now: Now) -> Option<KeyStep> {
        if self.look_due() <= now.monotonic {
            return Some(KeyStep::Look);
        }
        Some(match self.rotation.poll(now)? {
            RotationOutput::Draw => KeyStep::Draw,
            RotationOutput::Tell(key) => {
                self.telling = Some(key.clone());
                KeyStep::Announce(CurrentKeys { in_use: self.rotation.keys().0.clone(), next: Some(key) })
            }
            RotationOutput::Use(key) => KeyStep::Use(key),
        })
    }

    pub(super) fn deadline(&self) -> Option<Micros> {
        self.rotation.deadline().into_iter().chain([self.look_due()]).min()
    }

    fn look_due(&self) -> Micros {
        if self.changed {
            return Micros(0);
        }
        let handing_over = self.rotation.keys().1.is_some();
        self.looked.plus(if handing_over { LOOK_IN_HAND_OVER } else { LOOK })
    }

    /// Finds the sites that lost the right to read and those that left, and sends a due key to those that have the
    /// right. `sealed`: packets since the start.
    pub(super) fn look<C>(&mut self, now: Now, sessions: &LegSessions<'_>, sealed: u64) -> Vec<LegOutput<C>> {
        (self.looked, self.changed) = (now.monotonic, false);
        self.rotation.handle(now, RotationInput::Sealed(sealed));
        let barred = self.newly_barred(sessions.barred);
        for site in self.told.keys().filter(|site| !sessions.open.contains_key(site)) {
            self.rotation.handle(now, RotationInput::Gone(site.clone()));
        }
        self.told.retain(|_, credentials| !credentials.is_empty());
        let mut outputs = Vec::new();
        for (site, urgency) in barred {
            self.rotation.handle(now, RotationInput::Barred { site: site.clone(), urgency });
            outputs.push(LegOutput::Barred { site, urgency });
        }
        let may_read = |site: &SiteName, session: &LegSession| {
            session.offered && (sessions.barred)(site, &session.credential).is_none()
        };
        let readers = || sessions.open.iter().filter(|(site, session)| may_read(site, session));
        self.readers = readers().map(|(site, _)| site.clone()).collect();
        if let Some(key) = self.telling.take() {
            for (site, session) in readers() {
                self.told.entry(site.clone()).or_default().insert(session.credential.clone(), None);
                let (site, session) = (site.clone(), session.session);
                outputs.push(LegOutput::TellKey { site, session, key: key.clone() });
            }
        }
        outputs
    }

    fn newly_barred(
        &mut self,
        barred: &dyn Fn(&SiteName, &str) -> Option<Urgency>,
    ) -> Vec<(SiteName, Urgency)> {
        let mut newly = Vec::new();
        for (site, credentials) in &mut self.told {
            let leaves = self.rotation.is_leaving(site);
            credentials.retain(|credential, known| {
                let before = std::mem::replace(known, barred(site, credential));
                match *known {
                    None => true,
                    Some(urgency) if before == Some(urgency) => leaves,
                    Some(urgency) => {
                        newly.push((site.clone(), urgency));
                        urgency == Urgency::Soon
                    }
                }
            });
        }
        newly
    }
}

/// An expired credential is found within this time; every other change is reported by the roster.
const LOOK: Micros = Micros::from_millis(500);

/// The longest wait for a session that died during a hand-over.
const LOOK_IN_HAND_OVER: Micros = Micros::from_millis(100);
