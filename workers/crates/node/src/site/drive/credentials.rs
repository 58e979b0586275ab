//! What a site proves itself with, kept in its file beside the session: the disk may be slow.
use std::sync::Arc;

use downburst_site::{Credentials, CredentialsAnswer, CredentialsOrder, Input};
use tokio::sync::{Mutex, OwnedMutexGuard};
use tokio::task::JoinHandle;

use super::Site;
use crate::site::identity::{self, Identity};

/// Connections to nodes of one hub share a credential, and one of them changes it at a time.
pub(crate) type Turn = Arc<Mutex<()>>;

/// The file, and what is being written to it.
pub(super) struct KeptCredentials {
    identity: Identity,
    work: Option<JoinHandle<Kept>>,
    turn: Turn,
    held: Option<OwnedMutexGuard<()>>,
}

/// Whether it is kept now, or why it can't be.
pub(super) type Kept = Result<(), String>;

impl KeptCredentials {
    pub(super) fn new(identity: Identity, turn: Turn) -> Self {
        Self { identity, work: None, turn, held: None }
    }

    /// What is being written is kept, or can't be; waits for ever if there is nothing.
    pub(super) async fn kept(&mut self) -> Kept {
        let Some(work) = &mut self.work else { return std::future::pending().await };
        let kept = work.await;
        self.work = None;
        kept.unwrap_or_else(|error| Err(format!("the identity was not written: {error}")))
    }

    /// Waits for what is being written.
    pub(super) async fn finish(&mut self) {
        if self.work.is_some()
            && let Err(sentence) = self.kept().await
        {
            tracing::error!("{sentence}");
        }
    }

    fn keep(&mut self, credentials: Credentials) {
        self.identity.credentials = credentials;
        let identity = self.identity.clone();
        self.work = Some(tokio::task::spawn_blocking(move || identity.save()));
    }

    fn take_turn(&mut self) -> Option<CredentialsAnswer> {
        if self.held.is_none() {
            self.held = Some(Arc::clone(&self.turn).try_lock_owned().ok()?);
        }
        match identity::entropy() {
            Ok(entropy) => Some(CredentialsAnswer::Turn { kept: self.identity.read(), entropy }),
            Err(sentence) => {
                tracing::warn!("no other credential could be made: {sentence}");
                None
            }
        }
    }
}

impl Site {
    pub(super) fn carry_out(&mut self, order: CredentialsOrder) {
        let answer = match order {
            CredentialsOrder::Keep(credentials) => {
                self.credentials.keep(credentials);
                None
            }
            CredentialsOrder::Read => Some(CredentialsAnswer::Read(self.credentials.identity.read())),
            CredentialsOrder::TakeTurn => self.credentials.take_turn(),
            CredentialsOrder::EndTurn => {
                self.credentials.held = None;
                None
            }
        };
        if let Some(answer) = answer {
            self.answer(answer);
        }
    }

    pub(super) fn credentials_kept(&mut self, kept: Kept) {
        self.answer(CredentialsAnswer::Kept(kept));
    }

    fn answer(&mut self, answer: CredentialsAnswer) {
        self.tell(Input::Credentials(answer));
        self.network.trust(self.machine.credentials().ca_sha256());
    }
}
