use std::collections::{BTreeSet, VecDeque};

use downburst_model::{Machine, Micros, Now, SiteName};

use crate::LegKey;

/// Decides when a leg takes a new key, and when the sender starts to use it.
///
/// | state | event | outputs, next |
/// |---|---|---|
/// | steady | a site that knows the key is barred | owed: now, or [`MERGE`] after the last key if not urgent |
/// | steady | the key is [`OLDEST`] old, or sealed [`MOST_PACKETS`] | owed |
/// | owed | the time is reached | Draw |
/// | drawing | Drawn | Tell; handing over |
/// | handing over | every site present at its start has confirmed or gone, or the time is over | Use; steady |
/// | handing over | a site that knows the next key is barred | owed; the next key is replaced |
/// | handing over | a site that does not know it is barred | less time |
///
/// A lost connection does not bar a site: the site comes back, and the secret it kept is still secret. The
/// group continues under the old key while the next one is distributed, so no packet waits for a slow site; a
/// site without the key at the change loses packets until it has the key, and requests them.
#[derive(Debug)]
pub struct Rotation {
    key: LegKey,
    /// The time since which the sender uses it.
    since: Micros,
    /// Packets sealed before it was used.
    before: u64,
    sealed: u64,
    /// Sites with the key.
    holders: BTreeSet<SiteName>,
    /// Sites with the key that are to be excluded soon; the exclusion may become more urgent.
    leaving: BTreeSet<SiteName>,
    next: Option<Next>,
    owed: Option<(Micros, Urgency)>,
    drawing: bool,
    last_id: u8,
    made: Micros,
    outputs: VecDeque<RotationOutput>,
}

#[derive(Debug)]
struct Next {
    key: LegKey,
    holders: BTreeSet<SiteName>,
    /// As for the key in use.
    leaving: BTreeSet<SiteName>,
    /// Sites that have not confirmed it.
    awaited: BTreeSet<SiteName>,
    until: Micros,
}

/// The input of a rotation.
#[derive(Clone, Debug)]
pub enum RotationInput {
    /// The site was sent the key in use, and the next one if there is one.
    Told(SiteName),
    /// The site has the key with this id.
    Confirmed {
        /// The site.
        site: SiteName,
        /// [`LegKey::id`].
        key_id: u8,
    },
    /// The site's session ended.
    Gone(SiteName),
    /// The site must not read later packets.
    Barred {
        /// The site.
        site: SiteName,
        /// The urgency of its exclusion.
        urgency: Urgency,
    },
    /// The number of packets sealed by the sender since its start.
    Sealed(u64),
    /// Answer to [`RotationOutput::Draw`].
    Drawn {
        /// From the system's source of randomness; `None` if it failed, then Draw is repeated.
        secret: Option<[u8; 32]>,
        /// The sites that the key is sent to now.
        live: BTreeSet<SiteName>,
    },
}

/// The urgency of excluding a barred site.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Urgency {
    /// Its right ended (revoked, expired, removed from the allow list): within a second.
    AtOnce,
    /// It left by itself (unsubscribed), or with a replaced credential: together with others of that time.
    Soon,
}

/// The output of a rotation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RotationOutput {
    /// Draw a secret.
    Draw,
    /// Send the key to every site that may still read the leg, before its use.
    Tell(LegKey),
    /// The sender seals with this key from now on.
    Use(LegKey),
}

impl Rotation {
    /// Begins with the first key of a sender.
    pub fn new(now: Micros, key: LegKey) -> Self {
        Self {
            last_id: key.id,
            key,
            since: now,
            before: 0,
            sealed: 0,
            holders: BTreeSet::new(),
            leaving: BTreeSet::new(),
            next: None,
            owed: None,
            drawing: false,
            made: now,
            outputs: VecDeque::new(),
        }
    }

    /// Every site that can read the leg, now or under the next key.
    pub fn holders(&self) -> impl Iterator<Item = &SiteName> {
        self.holders.iter().chain(self.next.iter().flat_map(|next| &next.holders))
    }

    /// True while a barred site knows the key in use or the next one.
    pub fn is_leaving(&self, site: &SiteName) -> bool {
        self.leaving.contains(site) || self.next.as_ref().is_some_and(|next| next.leaving.contains(site))
    }

    /// The key in use, and the next one that was sent and is not used yet.
    pub fn keys(&self) -> (&LegKey, Option<&LegKey>) {
        (&self.key, self.next.as_ref().map(|next| &next.key))
    }

    fn bar(&mut self, now: Micros, site: &SiteName, urgency: Urgency) {
        let knew = shut_out(&mut self.holders, &mut self.leaving, site, urgency);
        let knows_next = self.next.as_mut().is_some_and(|next| {
            next.awaited.remove(site);
            shut_out(&mut next.holders, &mut next.leaving, site, urgency)
        });
        let due = match urgency {
            Urgency::AtOnce => (now, urgency),
            Urgency::Soon => (now.max(self.made.plus(MERGE)), urgency),
        };
        match &mut self.next {
            Some(next) if !knows_next && knew && urgency == Urgency::AtOnce => {
                next.until = next.until.min(now.plus(HURRIED));
            }
            Some(_) if !knows_next => {}
            _ if knew || knows_next => self.owed = Some(self.owed.map_or(due, |owed| owed.min(due))),
            _ => {}
        }
    }

    fn drawn(&mut self, now: Micros, secret: Option<[u8; 32]>, live: BTreeSet<SiteName>) {
        if !std::mem::take(&mut self.drawing) {
            return;
        }
        let Some(secret) = secret else {
            self.owed.get_or_insert((now, Urgency::Soon)).0 = now.plus(DRAW_AGAIN);
            return;
        };
        let hurried = self.owed.take().is_some_and(|(_, urgency)| urgency == Urgency::AtOnce);
        self.last_id = self.last_id.wrapping_add(1);
        let key = LegKey { id: self.last_id, secret, cipher: self.key.cipher };
        self.outputs.push_back(RotationOutput::Tell(key.clone()));
        let until = now.plus(if hurried { HURRIED } else { PATIENCE });
        self.next = Some(Next { key, holders: live.clone(), leaving: BTreeSet::new(), awaited: live, until });
        self.made = now;
    }

    fn take_next(&mut self, now: Micros) {
        let over = |next: &mut Next| next.awaited.is_empty() || next.until <= now;
        if let Some(next) = self.next.take_if(over) {
            self.key = next.key.clone();
            (self.holders, self.leaving) = (next.holders, next.leaving);
            (self.since, self.before) = (now, self.sealed);
            self.outputs.push_back(RotationOutput::Use(next.key));
        }
    }

    /// The time to make a new key. It waits for a key about to be used, so there are never more than three.
    fn due(&self) -> Option<Micros> {
        if self.drawing {
            return None;
        }
        let worn = self.sealed.saturating_sub(self.before) >= MOST_PACKETS;
        let age = if worn { self.since } else { self.since.plus(OLDEST) };
        match (&self.next, self.owed) {
            (None, owed) => Some(owed.map_or(age, |(due, _)| due.min(age))),
            (Some(_), None) => None,
            (Some(next), Some((due, Urgency::AtOnce))) if next.until > due.plus(HURRIED) => Some(due),
            (Some(next), Some((due, _))) => Some(due.max(next.until)),
        }
    }
}

/// Removes a barred site from the holders; true if it knows the key.
fn shut_out(
    holders: &mut BTreeSet<SiteName>,
    leaving: &mut BTreeSet<SiteName>,
    site: &SiteName,
    urgency: Urgency,
) -> bool {
    let knew = holders.remove(site) || leaving.contains(site);
    if knew && urgency == Urgency::Soon {
        leaving.insert(site.clone());
    }
    knew
}

impl Machine for Rotation {
    type Input = RotationInput;
    type Output = RotationOutput;

    fn handle(&mut self, now: Now, input: RotationInput) {
        let now = now.monotonic;
        match input {
            RotationInput::Told(site) => {
                if let Some(next) = &mut self.next {
                    next.holders.insert(site.clone());
                }
                self.holders.insert(site);
            }
            RotationInput::Confirmed { site, key_id } => {
                if let Some(next) = self.next.as_mut().filter(|next| next.key.id == key_id) {
                    next.awaited.remove(&site);
                }
            }
            RotationInput::Gone(site) => {
                if let Some(next) = &mut self.next {
                    next.awaited.remove(&site);
                }
            }
            RotationInput::Barred { site, urgency } => self.bar(now, &site, urgency),
            RotationInput::Sealed(packets) => self.sealed = packets,
            RotationInput::Drawn { secret, live } => self.drawn(now, secret, live),
        }
    }

    fn poll(&mut self, now: Now) -> Option<RotationOutput> {
        if self.outputs.is_empty() {
            self.take_next(now.monotonic);
            if self.due().is_some_and(|due| due <= now.monotonic) {
                self.drawing = true;
                self.outputs.push_back(RotationOutput::Draw);
            }
        }
        self.outputs.pop_front()
    }

    fn deadline(&self) -> Option<Micros> {
        if !self.outputs.is_empty() {
            return Some(Micros(0));
        }
        let next =
            self.next.as_ref().map(|next| if next.awaited.is_empty() { Micros(0) } else { next.until });
        next.into_iter().chain(self.due()).min()
    }
}

/// Sites that leave voluntarily are excluded together: each key costs a message to every site.
const MERGE: Micros = Micros::from_secs(10);

/// The time for sites to confirm a key when a site must be excluded: twice this, plus the session's own time,
/// is within the second allowed for a revocation.
const HURRIED: Micros = Micros::from_millis(400);

/// The time for sites otherwise: a slow session and a retransmission.
const PATIENCE: Micros = Micros::from_secs(5);

/// The span of packets that a leaked key opens.
const OLDEST: Micros = Micros::from_secs(3_600);

/// 2^28 datagrams of 91 AES blocks: as many blocks as TLS 1.3 allows AES-GCM (RFC 8446 §5.5: 2^24.5 records
/// of 2^10 blocks).
const MOST_PACKETS: u64 = 1 << 28;

/// The wait before a failed source of randomness is tried again.
const DRAW_AGAIN: Micros = Micros::from_millis(100);

#[cfg(test)]
mod tests;
