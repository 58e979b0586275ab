//! The replacement of credentials during sessions.
use downburst_model::{Micros, Now, SiteName, WallMicros};

use super::{Notice, SessionHandle, SessionLink, SessionRegistry};
use crate::known_sites::{CredentialStep, Sites};
use crate::session::SessionInput;

/// A session with a pending step of its credential.
#[derive(Debug)]
pub struct DueCredential<L> {
    handle: SessionHandle<L>,
    step: CredentialStep,
}

impl<L: SessionLink> SessionRegistry<L> {
    /// The sessions whose credential has a pending step. Their statuses are looked at later, by
    /// [`begin`](DueCredential::begin): a thread that holds one of them may be waiting for the sites.
    pub fn due_credentials(&self, sites: &Sites, now: WallMicros) -> Vec<DueCredential<L>> {
        let due = |(site, handle): (&SiteName, &SessionHandle<L>)| {
            let step = sites.step(site, &handle.credential_sha256, now)?;
            Some(DueCredential { handle: handle.clone(), step })
        };
        self.all().iter().filter_map(due).collect()
    }

    /// Has this session use another credential from now on, if the agent accepted that as the replacement of the
    /// session's. Returns the former one.
    pub fn take_credential(
        &mut self,
        sites: &Sites,
        (site, serial): (&SiteName, u64),
        sha256: &str,
        now: WallMicros,
    ) -> Option<String> {
        let replaced = sites.replaced_by(site, sha256, now)?;
        let handle = self.sessions.get_mut(site).filter(|handle| handle.serial == serial)?;
        (replaced == handle.credential_sha256)
            .then(|| std::mem::replace(&mut handle.credential_sha256, sha256.to_owned()))
    }
}

impl<L: SessionLink> DueCredential<L> {
    /// Begins some of the pending steps: requests another credential from sites whose current one is due, and has
    /// the agent notified where the new one is in use and the former one is still valid.
    pub fn begin(mut due: Vec<Self>, now: Now) -> Vec<Notice<L>> {
        // The session that has waited longest goes first: some never answer.
        due.sort_by_key(Self::last);
        due.into_iter().filter_map(|it| it.begun(now)).take(CHANGES_AT_ONCE).collect()
    }

    fn last(&self) -> Option<Micros> {
        self.handle.with_status(|status| status.credential.last())
    }

    /// Notes that the step is done now; `None` if it was done a moment ago.
    fn begun(self, now: Now) -> Option<Notice<L>> {
        let Self { handle, step } = self;
        let credential = &handle.credential_sha256;
        let begins =
            handle.link.with_status(|status| status.credential.begin(credential, step, now.monotonic));
        let input = match step {
            CredentialStep::Ask => SessionInput::WantCredential,
            CredentialStep::Tell => SessionInput::TellCredential,
        };
        begins.then_some((handle.link, input))
    }
}

/// The number of steps each second: a change has the agent write the ledger twice, and send the whole set of sites.
/// A thousand sites enrolled on the same day take four minutes.
const CHANGES_AT_ONCE: usize = 4;
