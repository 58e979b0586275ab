//! The rights and lifetime of credentials, and their replacement during a session.
use downburst_hub::{CredentialStep, SessionInput, SiteLine};
use downburst_model::{FeedName, Micros, Now, SiteName, WallMicros};
use downburst_session::Refused;
use downburst_vcmtp::Urgency;

use super::{Command, Handle, Roster};
use crate::hub::lock;

impl Roster {
    /// Ends the sessions whose credential has expired.
    pub(in crate::hub) fn expire(&self, now: WallMicros) {
        let sessions = lock(&self.sessions);
        let sites = self.sites();
        for (site, handle) in sessions.iter() {
            if let Err(refused) = sites.check(site, &handle.credential_sha256, now) {
                let _ = handle.commands.send(Command::Tell(SessionInput::Refuse(refused)));
            }
        }
    }

    /// Checks a credential.
    pub(in crate::hub) fn check(
        &self,
        site: &SiteName,
        sha256: &str,
        now: WallMicros,
    ) -> Result<SiteLine, Refused> {
        self.sites().check(site, sha256, now).cloned()
    }

    /// Returns how soon the holder of this credential has to be barred from the feed's legs; `None` if not at all.
    pub(in crate::hub) fn barred(
        &self,
        site: &SiteName,
        sha256: &str,
        feed: &FeedName,
        now: WallMicros,
    ) -> Option<Urgency> {
        self.sites().barred(site, sha256, feed, now)
    }

    /// Continues changes of credentials, some at a time: requests another credential from sites whose current one is
    /// due, and notifies the agent where the new one is in use and the former one is still valid.
    pub(in crate::hub) fn tend_credentials(&self, now: Now) {
        let mut due = self.due_credentials(now);
        // The session that has waited longest goes first: some never answer.
        due.sort_by_key(Due::last);
        for (handle, step) in due.into_iter().filter_map(|it| it.begin(now)).take(CHANGES_A_SECOND) {
            let _ = handle.commands.send(Command::Tell(match step {
                CredentialStep::Ask => SessionInput::WantCredential,
                CredentialStep::Tell => SessionInput::TellCredential,
            }));
        }
    }

    /// Has this session use another credential from now on, if the agent accepted that as the replacement of the
    /// session's. Returns the former one.
    pub(in crate::hub) fn take_credential(
        &self,
        site: &SiteName,
        serial: u64,
        sha256: &str,
        now: WallMicros,
    ) -> Option<String> {
        let replaced = self.sites().replaced_by(site, sha256, now)?;
        let mut sessions = lock(&self.sessions);
        let handle = sessions.get_mut(site).filter(|handle| handle.serial == serial)?;
        (replaced == handle.credential_sha256)
            .then(|| std::mem::replace(&mut handle.credential_sha256, sha256.to_owned()))
    }

    /// The sessions' own locks are taken later: a thread that holds one of them may be waiting for the sites.
    fn due_credentials(&self, now: Now) -> Vec<Due> {
        let sessions = lock(&self.sessions);
        let sites = self.sites();
        let due = |(site, handle): (&SiteName, &Handle)| {
            let step = sites.step(site, &handle.credential_sha256, now.wall)?;
            Some(Due { handle: handle.clone(), step })
        };
        sessions.iter().filter_map(due).collect()
    }
}

/// A session with a pending step of its credential.
struct Due {
    handle: Handle,
    step: CredentialStep,
}

impl Due {
    fn last(&self) -> Option<Micros> {
        lock(&self.handle.status).credential.last()
    }

    /// Notes that the step is done now; `None` if it was done a moment ago.
    fn begin(self, now: Now) -> Option<(Handle, CredentialStep)> {
        let begins = lock(&self.handle.status).credential.begin(
            &self.handle.credential_sha256,
            self.step,
            now.monotonic,
        );
        begins.then_some((self.handle, self.step))
    }
}

/// Each change has the agent write the ledger twice, and send the whole set of sites. A thousand sites
/// enrolled on the same day take four minutes.
const CHANGES_A_SECOND: usize = 4;
