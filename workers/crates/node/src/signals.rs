//! Signals that end the process or have it read its rules again.
use tokio::signal::unix::{SignalKind, signal};

/// Waits for SIGTERM or SIGINT.
pub(crate) async fn ended() {
    match (signal(SignalKind::terminate()), signal(SignalKind::interrupt())) {
        (Ok(mut terminate), Ok(mut interrupt)) => {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
        }
        _ => std::future::pending().await,
    }
}

/// SIGHUP: the files of rules are read again.
pub(crate) struct Reread(Option<tokio::signal::unix::Signal>);

impl Reread {
    pub(crate) fn listen() -> Self {
        Self(signal(SignalKind::hangup()).ok())
    }

    /// Waits for the next signal.
    pub(crate) async fn asked(&mut self) {
        let came = match &mut self.0 {
            Some(signal) => signal.recv().await.is_some(),
            None => false,
        };
        if !came {
            std::future::pending::<()>().await;
        }
    }
}
