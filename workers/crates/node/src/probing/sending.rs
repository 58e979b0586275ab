//! The thread that sends one step.
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use downburst_probe::Sent;
use tokio::sync::oneshot;

/// A step that is being sent; it ends when this is dropped.
pub(crate) struct Sending {
    holds: Arc<AtomicBool>,
    result: oneshot::Receiver<Sent>,
}

impl Sending {
    /// Sends from a thread of its own, which looks at the flag whether it is to end.
    pub(super) fn start(send: impl FnOnce(&AtomicBool) -> Sent + Send + 'static) -> io::Result<Self> {
        let holds = Arc::new(AtomicBool::new(false));
        let (tell, result) = oneshot::channel();
        let held = Arc::clone(&holds);
        let thread = std::thread::Builder::new().name("probe-step".to_owned());
        thread.spawn(move || {
            // At the end of the process there is no receiver any more.
            let _ = tell.send(send(&held));
        })?;
        Ok(Self { holds, result })
    }

    /// Sends no more.
    pub(crate) fn hold(&self) {
        self.holds.store(true, Ordering::Relaxed);
    }

    /// Waits until the step is sent; cancelling the wait loses nothing.
    pub(crate) async fn ended(&mut self) -> Sent {
        (&mut self.result).await.unwrap_or_default()
    }
}

impl Drop for Sending {
    fn drop(&mut self) {
        self.hold();
    }
}
