//! The site's credentials, written to their file beside the session: the disk may be slow.
use std::sync::Arc;

use downburst_site::{Credentials, CredentialsAnswer, CredentialsOrder, Input};
use tokio::sync::{OwnedMutexGuard, oneshot};

use super::Site;
use crate::site::parts::Turn;
use crate::site::state::{Identity, entropy};

/// The file, and the pending write to it.
pub(super) struct KeptCredentials {
    identity: Identity,
    work: Option<oneshot::Receiver<Kept>>,
    turn: Turn,
    held: Option<OwnedMutexGuard<()>>,
}

/// The result of a write.
pub(super) type Kept = Result<(), String>;

impl KeptCredentials {
    pub(super) fn new(identity: Identity, turn: Turn) -> Self {
        Self { identity, work: None, turn, held: None }
    }

    /// Waits for the result of the pending write; pends forever if there is none.
    pub(super) async fn kept(&mut self) -> Kept {
        let Some(work) = &mut self.work else { return std::future::pending().await };
        let kept = work.await;
        self.work = None;
        kept.unwrap_or_else(|_| Err("the identity was not written".to_owned()))
    }

    /// Waits for the pending write.
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
        let (done, work) = oneshot::channel();
        self.work = Some(work);
        // A thread of its own, which ends: a thread of the runtime's pool would stay, and be woken.
        let thread = std::thread::Builder::new().name("identity".to_owned());
        let started = thread.spawn(move || done.send(identity.save()));
        if let Err(error) = started {
            tracing::error!("no thread to keep the identity: {error}");
        }
    }

    fn take_turn(&mut self) -> Option<CredentialsAnswer> {
        if self.held.is_none() {
            self.held = Some(Arc::clone(&self.turn).try_lock_owned().ok()?);
        }
        match entropy() {
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
