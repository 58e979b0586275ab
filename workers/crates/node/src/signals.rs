//! The ways a process is asked to end.
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
