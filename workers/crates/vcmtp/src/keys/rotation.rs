use std::collections::{BTreeSet, VecDeque};

use downburst_model::{Machine, Micros, Now, SiteName};

use crate::LegKey;

/// Decides when a leg takes another key, and when the sender may begin to use it.
///
/// | state | event | outputs, next |
/// |---|---|---|
/// | steady | a site that knows the key is barred | owed: now, or [`MERGE`] after the last key without hurry |
/// | steady | the key is [`OLDEST`] old, or sealed [`MOST_PACKETS`] | owed |
/// | owed | its time | Draw |
/// | drawing | Drawn | Tell; handing over |
/// | handing over | every site that was there has confirmed or gone, or the time is over | Use; steady |
/// | handing over | a site that knows the next key is barred | owed; the next key is dropped for another |
/// | handing over | a site that does not know it is barred | less time |
///
/// A lost connection bars nobody: the site comes back, and a secret that it kept is still a secret. The group
/// goes on under the old key while the next one is distributed, so nothing waits for a slow site; a site that
/// lacks the key when it is used misses packets until it has it, and asks for them.
#[derive(Debug)]
pub struct Rotation {
    key: LegKey,
    /// Since when the sender uses it.
    since: Micros,
    /// Packets sealed before it was used.
    before: u64,
    sealed: u64,
    /// Sites that were told the key.
    holders: BTreeSet<SiteName>,
    /// Sites that are to be excluded soon, and know the key until then: it may have to be sooner.
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
    /// As of the key in use.
    leaving: BTreeSet<SiteName>,
    /// Sites that have not confirmed it.
    awaited: BTreeSet<SiteName>,
    until: Micros,
}

/// What a rotation is told.
#[derive(Clone, Debug)]
pub enum RotationInput {
    /// The site was told the key in use, and the next one if there is one.
    Told(SiteName),
    /// The site has the key with this id.
    Confirmed {
        /// Which site.
        site: SiteName,
        /// [`LegKey::id`].
        key_id: u8,
    },
    /// The site's session ended.
    Gone(SiteName),
    /// The site may not read on.
    Barred {
        /// Which site.
        site: SiteName,
        /// How soon it has to be excluded.
        urgency: Urgency,
    },
    /// Packets that the sender sealed since it started.
    Sealed(u64),
    /// Answer to [`RotationOutput::Draw`].
    Drawn {
        /// From the system's source of randomness; `None` if it failed, then it is asked again.
        secret: Option<[u8; 32]>,
        /// The sites that the key will be told to now.
        live: BTreeSet<SiteName>,
    },
}

/// How soon a barred site is excluded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Urgency {
    /// Its right ended (revoked, expired, taken off the allow list): within a second.
    AtOnce,
    /// It left by itself (unsubscribed), or with a replaced credential: with others of the same time.
    Soon,
}

/// What a rotation asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RotationOutput {
    /// Draw a secret.
    Draw,
    /// Tell every site of the leg that still may read it, ahead of its use.
    Tell(LegKey),
    /// The sender seals with it from here on.
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

    /// True while a site that is barred knows a key that is in use or will be.
    pub fn is_leaving(&self, site: &SiteName) -> bool {
        self.leaving.contains(site) || self.next.as_ref().is_some_and(|next| next.leaving.contains(site))
    }

    /// The key in use, and the one that was told and is not used yet.
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

    /// When another key has to be made. A key that is about to be used is waited for: there are never more than three.
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

/// True if the site knows the key.
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

/// Sites that leave of their own will are excluded together: each key costs a message to every site.
const MERGE: Micros = Micros::from_secs(10);

/// The time for sites to confirm a key when a site has to be excluded: twice this, plus the session's own
/// time, is within the second that a revocation may last.
const HURRIED: Micros = Micros::from_millis(400);

/// How long sites have otherwise: a slow session and a retransmission.
const PATIENCE: Micros = Micros::from_secs(5);

/// What a key that leaked opens.
const OLDEST: Micros = Micros::from_secs(3_600);

/// 2^28 datagrams of 91 AES blocks: as many blocks as TLS 1.3 allows AES-GCM (RFC 8446 §5.5: 2^24.5 records
/// of 2^10 blocks).
const MOST_PACKETS: u64 = 1 << 28;

/// A source of randomness that fails is asked again.
const DRAW_AGAIN: Micros = Micros::from_millis(100);

#[cfg(test)]
mod tests;
