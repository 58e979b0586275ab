//! The sessions of a hub: one for each connected site.
//!
//! A second receiver of a site is refused while the first one is heard, and takes its place when the first one is
//! silent or on stand-by.
mod asks;
mod changes;
mod credentials;
#[cfg(test)]
pub(crate) mod testlink;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;

use downburst_model::{Micros, SiteName, WallMicros};
use downburst_session::{RefusalCode, Refused};

use crate::known_sites::Sites;
use crate::pace::hour;
use crate::session::{SessionInput, SessionStatus};

pub use asks::AgentAsks;
pub use credentials::DueCredential;

/// The driver's link to a session: a clone leads to the same session.
pub trait SessionLink: Clone {
    /// Looks at the session's status, or changes it.
    fn with_status<T>(&self, look: impl FnOnce(&mut SessionStatus) -> T) -> T;
}

/// A registered session. It derefs to the driver's link.
#[derive(Clone, Debug)]
pub struct SessionHandle<L> {
    /// The number of the session; none has it again.
    pub serial: u64,
    /// The credential that it uses, as SHA-256 in hex.
    pub credential_sha256: String,
    /// True if the site currently takes its feeds from another hub.
    pub stand_by: bool,
    /// The link to it.
    pub link: L,
}

/// An input for the session behind a link.
pub type Notice<L> = (L, SessionInput);

/// All sessions of a hub, and the facts that outlive them.
#[derive(Debug)]
pub struct SessionRegistry<L> {
    sessions: BTreeMap<SiteName, SessionHandle<L>>,
    /// Sites whose session ended since the last report to the agent.
    gone: BTreeSet<SiteName>,
    /// The number of data connections that paid off in a site's last session.
    learnt: BTreeMap<SiteName, usize>,
    last_serial: u64,
    /// The hour at the last check of the bounds by hour.
    hour: i64,
}

/// A session that asks for its site's place.
#[derive(Debug)]
pub struct Newcomer<L> {
    /// Its credential, as SHA-256 in hex.
    pub credential_sha256: String,
    /// True if the site currently takes its feeds from another hub.
    pub stand_by: bool,
    /// The link to it.
    pub link: L,
}

/// The result of a registration.
#[derive(Debug)]
pub struct Registered<L> {
    /// The session.
    pub handle: SessionHandle<L>,
    /// The notice to the session that lost its place.
    pub displaced: Option<Notice<L>>,
}

impl<L: SessionLink> SessionRegistry<L> {
    /// Registers a session as its site's.
    ///
    /// # Errors
    ///
    /// The refusal, if another session of the site is active.
    pub fn register(
        &mut self,
        site: &SiteName,
        newcomer: Newcomer<L>,
        now: Micros,
    ) -> Result<Registered<L>, Refused> {
        let displaced = match self.sessions.get(site) {
            Some(other) if other.is_active(now) => return Err(busy(site)),
            other => other.map(|other| (other.link.clone(), SessionInput::Refuse(displaced()))),
        };
        self.last_serial += 1;
        let Newcomer { credential_sha256, stand_by, link } = newcomer;
        let handle = SessionHandle { serial: self.last_serial, credential_sha256, stand_by, link };
        self.sessions.insert(site.clone(), handle.clone());
        Ok(Registered { handle, displaced })
    }

    /// The inputs for all sessions when another hour of the day begins, which may have a bound of its own.
    pub fn turn_hour(&mut self, now: WallMicros) -> Vec<Notice<L>> {
        let hour = hour(now);
        if std::mem::replace(&mut self.hour, hour) == hour {
            return Vec::new();
        }
        self.sessions.values().map(|handle| (handle.link.clone(), SessionInput::Pace)).collect()
    }

    /// The ends of the sessions whose credential has expired.
    pub fn expired(&self, sites: &Sites, now: WallMicros) -> Vec<Notice<L>> {
        let ended = |(site, handle): (&SiteName, &SessionHandle<L>)| {
            let refused = sites.check(site, &handle.credential_sha256, now).err()?;
            Some((handle.link.clone(), SessionInput::Refuse(refused)))
        };
        self.sessions.iter().filter_map(ended).collect()
    }

    /// The inputs for the sessions when the agent replaces the set of sites: sessions of sites that may no longer
    /// connect end, the others learn the changes.
    pub fn replaced(&self, known: &Sites, told: &Sites) -> Vec<Notice<L>> {
        let mut notices = Vec::new();
        for (site, handle) in &self.sessions {
            let inputs = match told.holding(site, &handle.credential_sha256) {
                Ok(line) => changes::inputs(known.find(site), line),
                Err(refused) => vec![SessionInput::Refuse(refused)],
            };
            notices.extend(inputs.into_iter().map(|input| (handle.link.clone(), input)));
        }
        notices
    }
}

impl<L> SessionRegistry<L> {
    /// Removes a session; returns false if a newer connection had already taken its place.
    pub fn unregister(&mut self, site: &SiteName, serial: u64) -> bool {
        let current = self.find(site).is_some_and(|handle| handle.serial == serial);
        if current {
            self.sessions.remove(site);
            self.gone.insert(site.clone());
        }
        current
    }

    /// The session of a site.
    pub fn find(&self, site: &SiteName) -> Option<&SessionHandle<L>> {
        self.sessions.get(site)
    }

    /// The session with this number.
    pub fn with_serial(&self, serial: u64) -> Option<&SessionHandle<L>> {
        self.sessions.values().find(|handle| handle.serial == serial)
    }

    /// All sessions, in the order of the sites' names.
    pub fn all(&self) -> &BTreeMap<SiteName, SessionHandle<L>> {
        &self.sessions
    }

    /// Sites whose session ended since the last call.
    pub fn take_gone(&mut self) -> BTreeSet<SiteName> {
        std::mem::take(&mut self.gone)
    }

    /// The number of data connections that paid off in the site's last session.
    pub fn learnt(&self, site: &SiteName) -> usize {
        self.learnt.get(site).copied().unwrap_or(0)
    }

    /// Stores the number of data connections that pay off for a site, for its next session.
    pub fn learn(&mut self, site: &SiteName, count: usize) {
        if count == 0 {
            self.learnt.remove(site);
        } else {
            self.learnt.insert(site.clone(), count);
        }
    }
}

impl<L> Default for SessionRegistry<L> {
    fn default() -> Self {
        let (sessions, gone, learnt) = (BTreeMap::new(), BTreeSet::new(), BTreeMap::new());
        Self { sessions, gone, learnt, last_serial: 0, hour: 0 }
    }
}

impl<L: SessionLink> SessionHandle<L> {
    /// True if the session keeps its place: it serves the site, and the site was heard recently.
    fn is_active(&self, now: Micros) -> bool {
        !self.stand_by && now.since(self.link.with_status(|status| status.heard_at)) < ALIVE_WITHIN
    }
}

impl<L> Deref for SessionHandle<L> {
    type Target = L;

    fn deref(&self) -> &L {
        &self.link
    }
}

fn busy(site: &SiteName) -> Refused {
    let sentence =
        format!("another receiver is active as site {site}; stop it, or give this one a site of its own");
    Refused { code: RefusalCode::Busy, sentence }
}

fn displaced() -> Refused {
    let sentence = "a newer connection took this session's place".to_owned();
    Refused { code: RefusalCode::Busy, sentence }
}

/// A keep-alive arrives every 5 s; a session that missed one counts as dead when its site connects again.
const ALIVE_WITHIN: Micros = Micros::from_secs(7);
