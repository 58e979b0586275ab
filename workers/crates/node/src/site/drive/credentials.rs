//! The site's credential, changed while the session goes on. Each step is on the disk before the hub receives
//! it; the disk may be slow, and products do not wait for it.
use std::sync::Arc;

use downburst_session::{CredentialKept, CredentialOffered, CredentialShown, SiteInput};
use tokio::sync::{Mutex, OwnedMutexGuard};
use tokio::task::JoinHandle;

use super::Site;
use crate::site::identity::Identity;

/// Connections to nodes of one hub share a credential, and one of them changes it at a time.
pub(crate) type Turn = Arc<Mutex<()>>;

/// What is being written.
#[derive(Default)]
pub(super) struct Saving {
    work: Option<JoinHandle<Saved>>,
    turn: Turn,
    held: Option<OwnedMutexGuard<()>>,
}

/// The identity as it is kept now, and the word that was waiting for that; or why it can't be kept.
pub(super) type Saved = Result<(Identity, SiteInput), String>;

impl Saving {
    pub(super) fn by_turns(turn: Turn) -> Self {
        Self { turn, ..Self::default() }
    }

    pub(super) fn is_busy(&self) -> bool {
        self.work.is_some()
    }

    /// Lets the others change the credential.
    pub(super) fn end_turn(&mut self) {
        self.held = None;
    }

    pub(super) async fn done(&mut self) -> Saved {
        let Some(work) = &mut self.work else { return std::future::pending().await };
        let saved = work.await;
        self.work = None;
        saved.unwrap_or_else(|error| Err(format!("the identity was not written: {error}")))
    }

    fn begin(&mut self, identity: Identity, word: SiteInput) {
        let work = move || identity.save().map(|()| (identity, word));
        self.work = Some(tokio::task::spawn_blocking(work));
    }

    fn take_turn(&mut self) -> bool {
        if self.held.is_none() {
            self.held = Arc::clone(&self.turn).try_lock_owned().ok();
        }
        self.held.is_some()
    }
}

impl Site {
    /// In the place of the one with this SHA-256. The hub asks again for what is not answered.
    pub(super) fn want_credential(&mut self, of: &str) {
        if self.saving.is_busy() || !self.saving.take_turn() {
            return;
        }
        if self.identity.take_up() {
            self.hang_up = true;
            return;
        }
        match self.identity.offering(of) {
            Ok((identity, sha256)) => {
                self.saving.begin(identity, SiteInput::OfferCredential(CredentialOffered { sha256 }));
            }
            Err(sentence) => tracing::warn!("no other credential could be made: {sentence}"),
        }
    }

    pub(super) fn keep_credential(&mut self, kept: &CredentialKept) {
        if self.saving.is_busy() {
            return;
        }
        if let Some((identity, secret)) = self.identity.showing(&kept.sha256) {
            let days = kept.ends.map(|ends| ends.0.saturating_sub(self.clock.wall().0) / MICROS_A_DAY);
            tracing::info!(days, "the site has another credential");
            self.saving.begin(identity, SiteInput::ShowCredential(CredentialShown { secret }));
        }
    }

    /// What can't be kept is not said: the site goes on with what it has.
    pub(super) fn saved(&mut self, saved: Saved) {
        match saved {
            Ok((identity, word)) => {
                self.identity = identity;
                if matches!(word, SiteInput::ShowCredential(_)) {
                    self.saving.end_turn();
                }
                self.tell(word);
            }
            Err(sentence) => tracing::error!("{sentence}; the site keeps the credential that it has"),
        }
    }
}

const MICROS_A_DAY: i64 = 86_400_000_000;
