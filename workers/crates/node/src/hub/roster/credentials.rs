//! What credentials allow, how long, and how one takes the place of another while its session goes on.
use std::collections::BTreeMap;

use downburst_model::{FeedName, Micros, Now, SiteName, WallMicros};
use downburst_session::{RefusalCode, Refused};
use downburst_vcmtp::Urgency;

use super::{Command, Handle, Roster};
use crate::hub::lock;
use crate::lines::{CredentialLine, SiteLine};

/// How a change of a session's credential goes on.
#[derive(Clone, Debug, Default)]
pub(in crate::hub) struct CredentialChange {
    /// What was done last, for which credential, and when.
    done: Option<(String, Step, Micros)>,
}

impl Roster {
    /// Ends the sessions whose credential's time is over.
    pub(in crate::hub) fn expire(&self, now: WallMicros) {
        let sessions = lock(&self.sessions);
        let sites = self.sites.read().unwrap_or_else(std::sync::PoisonError::into_inner);
        for (site, handle) in sessions.iter() {
            if let Err(refused) = checked(sites.as_ref(), site, &handle.credential_sha256, now) {
                let _ = handle.commands.send(Command::Refuse(refused));
            }
        }
    }

    /// Decides on a credential.
    pub(in crate::hub) fn check(
        &self,
        site: &SiteName,
        sha256: &str,
        now: WallMicros,
    ) -> Result<SiteLine, Refused> {
        let sites = self.sites.read().unwrap_or_else(std::sync::PoisonError::into_inner);
        checked(sites.as_ref(), site, sha256, now).cloned()
    }

    /// Whether whoever has this credential may read a leg of the feed, and if not, how soon it has to be shut out.
    pub(in crate::hub) fn barred(
        &self,
        site: &SiteName,
        sha256: &str,
        feed: &FeedName,
        now: WallMicros,
    ) -> Option<Urgency> {
        match self.check(site, sha256, now) {
            Ok(line) if !line.may_take(feed) => Some(Urgency::AtOnce),
            Ok(line) => line.subscriptions.iter().all(|item| item.feed != *feed).then_some(Urgency::Soon),
            Err(refused) if refused.code == RefusalCode::Unavailable => None,
            // The site reads on with the one that took its place. Whoever has the former one alone does not.
            Err(_) if self.was_replaced(site, sha256, feed, now) => Some(Urgency::Soon),
            Err(_) => Some(Urgency::AtOnce),
        }
    }

    /// Continues changes of credentials, some at a time: asks sites whose credential is due for another one,
    /// and notifies the agent where the new one is in use and the former one is still valid.
    pub(in crate::hub) fn tend_credentials(&self, now: Now) {
        let mut due = self.due_credentials(now);
        // Whoever waits longest goes first: some never answer.
        due.sort_by_key(Due::last);
        for (handle, step) in due.into_iter().filter_map(|it| it.begin(now)).take(CHANGES_A_SECOND) {
            let _ = handle.commands.send(match step {
                Step::Ask => Command::WantCredential,
                Step::Tell => Command::TellCredential,
            });
        }
    }

    /// The site of this session uses another credential from here on, if that was kept in the place of the
    /// session's. Returns the former one.
    pub(in crate::hub) fn take_credential(
        &self,
        site: &SiteName,
        serial: u64,
        sha256: &str,
        now: WallMicros,
    ) -> Option<String> {
        let line = self.check(site, sha256, now).ok()?;
        let shown = line.credentials.into_iter().find(|credential| credential.sha256 == sha256)?;
        let mut sessions = lock(&self.sessions);
        let handle = sessions.get_mut(site).filter(|handle| handle.serial == serial)?;
        shown.replaces.filter(|former| *former == handle.credential_sha256)?;
        Some(std::mem::replace(&mut handle.credential_sha256, sha256.to_owned()))
    }

    /// Sessions' own locks are taken later: whoever holds one of them may wait for the sites.
    fn due_credentials(&self, now: Now) -> Vec<Due> {
        let sessions = lock(&self.sessions);
        let sites = self.sites.read().unwrap_or_else(std::sync::PoisonError::into_inner);
        let due = |(site, handle): (&SiteName, &Handle)| {
            let step = step(sites.as_ref()?.get(site)?, &handle.credential_sha256, now.wall)?;
            Some(Due { handle: handle.clone(), step })
        };
        sessions.iter().filter_map(due).collect()
    }

    /// True if a good credential of the site, which may read the feed, took the place of this one.
    fn was_replaced(&self, site: &SiteName, sha256: &str, feed: &FeedName, now: WallMicros) -> bool {
        let follows = |it: &CredentialLine| it.replaces.as_deref() == Some(sha256) && !it.has_ended(now);
        let line = self.site(site).filter(|line| line.active && line.may_take(feed));
        line.is_some_and(|line| line.credentials.iter().any(follows))
    }
}

/// A session whose credential something is to be done for.
struct Due {
    handle: Handle,
    step: Step,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// The site is to have another one.
    Ask,
    /// It shows one that took the place of another, and that is still good.
    Tell,
}

impl Due {
    fn last(&self) -> Option<Micros> {
        lock(&self.handle.status).credential.done.as_ref().map(|(_, _, at)| *at)
    }

    /// Notes that it is done now, unless it was a moment ago.
    fn begin(self, now: Now) -> Option<(Handle, Step)> {
        let change = &mut lock(&self.handle.status).credential;
        let done = change
            .done
            .as_ref()
            .filter(|(sha256, step, _)| *sha256 == self.handle.credential_sha256 && *step == self.step);
        if done.is_some_and(|(_, _, at)| now.monotonic.since(*at) < AGAIN) {
            return None;
        }
        change.done = Some((self.handle.credential_sha256.clone(), self.step, now.monotonic));
        Some((self.handle.clone(), self.step))
    }
}

fn step(line: &SiteLine, sha256: &str, now: WallMicros) -> Option<Step> {
    let credential = line.credentials.iter().find(|credential| credential.sha256 == sha256)?;
    if credential.replaces.as_deref().is_some_and(|former| holds(line, former)) {
        return Some(Step::Tell);
    }
    credential.renew_us.is_some_and(|at| at <= now).then_some(Step::Ask)
}

pub(super) fn holds(line: &SiteLine, sha256: &str) -> bool {
    line.active && line.credentials.iter().any(|credential| credential.sha256 == sha256)
}

fn checked<'a>(
    sites: Option<&'a BTreeMap<SiteName, SiteLine>>,
    site: &SiteName,
    sha256: &str,
    now: WallMicros,
) -> Result<&'a SiteLine, Refused> {
    let Some(sites) = sites else {
        let sentence = "the hub is starting; connect again in a moment".to_owned();
        return Err(Refused { code: RefusalCode::Unavailable, sentence });
    };
    let line = sites.get(site).filter(|line| line.active).ok_or_else(|| revoked(site))?;
    let credential = line.credentials.iter().find(|credential| credential.sha256 == sha256);
    let credential = credential.ok_or_else(|| revoked(site))?;
    if credential.has_ended(now) {
        let sentence = format!(
            "the credential of site {site} has expired; ask the hub's operator for a new token (downburst sites \
             token {site}), and start the receiver again with it as --token-file"
        );
        return Err(Refused { code: RefusalCode::Expired, sentence });
    }
    Ok(line)
}

pub(super) fn revoked(site: &SiteName) -> Refused {
    let sentence = format!(
        "the credential of site {site} is not valid here (unknown or revoked); ask the hub's operator for a new token"
    );
    Refused { code: RefusalCode::Credential, sentence }
}

/// What was not answered is said again.
const AGAIN: Micros = Micros::from_secs(60);

/// Each change has the agent write the ledger twice, and send the whole set of sites. A thousand sites
/// enrolled on the same day take four minutes.
const CHANGES_A_SECOND: usize = 4;
