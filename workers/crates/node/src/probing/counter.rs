//! The count of a step's arrivals, whatever carried them.
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use downburst_model::{Micros, Now};
use downburst_probe::{Figures, Packet, Receiver};

use crate::clock::Clock;

/// Counts the present step; the thread that reads and the conduct of the probe share it.
#[derive(Clone)]
pub(crate) struct Counter {
    clock: Clock,
    rest: Rest,
    /// The packets that the receiving socket had no room for, since it was opened.
    drops: Arc<dyn Fn() -> u64 + Send + Sync>,
    counted: Arc<Mutex<Option<Counted>>>,
}

pub(super) struct Counted {
    step: u16,
    receiver: Receiver,
    /// The socket's drops before the step.
    dropped_before: u64,
}

/// The time for which more may arrive behind the last packet.
#[derive(Clone, Copy)]
pub(super) struct Rest {
    /// Without an arrival.
    pub(super) quiet: Micros,
    pub(super) longest: Micros,
}

impl Counter {
    pub(super) fn new(clock: Clock, rest: Rest) -> Self {
        Self { clock, rest, drops: Arc::new(|| 0), counted: Arc::default() }
    }

    /// Counts beside the arrivals how many packets the socket dropped, by its own count since it was opened.
    pub(super) fn with_drops(self, drops: impl Fn() -> u64 + Send + Sync + 'static) -> Self {
        Self { drops: Arc::new(drops), ..self }
    }

    pub(super) fn begin(&self, step: u16, receiver: Receiver) {
        let dropped_before = (self.drops)();
        *self.counted() = Some(Counted { step, receiver, dropped_before });
    }

    pub(super) fn took(&self, now: Now, packet: &Packet) {
        if let Some(Counted { step, receiver, .. }) = self.counted().as_mut()
            && *step == packet.step
        {
            receiver.took(now, packet);
        }
    }

    /// The arrivals of the last second of the step.
    pub(crate) fn second(&self) -> Figures {
        let dropped = (self.drops)();
        let mut counted = self.counted();
        counted.as_mut().map(|counted| counted.with_drops(dropped).second()).unwrap_or_default()
    }

    /// The packets that arrived, and the last arrival.
    pub(crate) fn arrived(&self) -> (u64, Option<Micros>) {
        let counted = self.counted();
        let receiver = counted.as_ref().map(|counted| &counted.receiver);
        receiver.map_or((0, None), |receiver| (receiver.received(), receiver.last_arrival()))
    }

    /// Waits until no more arrives of a step of `sent` packets.
    pub(crate) async fn settle(&self, sent: u64) {
        let begin = self.clock.monotonic();
        loop {
            let now = self.clock.monotonic();
            let (received, last) = self.arrived();
            let quiet_since = last.unwrap_or(begin).max(begin);
            let is_quiet = now.since(quiet_since) >= self.rest.quiet;
            if received >= sent || is_quiet || now.since(begin) >= self.rest.longest {
                return;
            }
            tokio::time::sleep(LOOK_INTERVAL).await;
        }
    }

    /// The arrivals of the step, of which the sender sent so many; it is counted no longer.
    pub(crate) fn finish(&self, sent: u64) -> Figures {
        let dropped = (self.drops)();
        let Some(mut counted) = self.counted().take() else { return Figures::default() };
        counted.with_drops(dropped);
        counted.receiver.finish(sent)
    }

    pub(super) fn counted(&self) -> MutexGuard<'_, Option<Counted>> {
        self.counted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Counted {
    fn with_drops(&mut self, dropped: u64) -> &mut Receiver {
        self.receiver.dropped(dropped.saturating_sub(self.dropped_before));
        &mut self.receiver
    }
}

const LOOK_INTERVAL: Duration = Duration::from_millis(10);
