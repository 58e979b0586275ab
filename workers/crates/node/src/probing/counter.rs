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
    counted: Arc<Mutex<Option<(u16, Receiver)>>>,
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
        Self { clock, rest, counted: Arc::default() }
    }

    pub(super) fn begin(&self, number: u16, receiver: Receiver) {
        *self.counted() = Some((number, receiver));
    }

    pub(super) fn took(&self, now: Now, packet: &Packet) {
        if let Some((step, receiver)) = self.counted().as_mut()
            && *step == packet.step
        {
            receiver.took(now, packet);
        }
    }

    /// The arrivals of the last second of the step.
    pub(crate) fn second(&self) -> Figures {
        let mut counted = self.counted();
        counted.as_mut().map(|(_, receiver)| receiver.second()).unwrap_or_default()
    }

    /// The packets that arrived, and the last arrival.
    pub(crate) fn arrived(&self) -> (u64, Option<Micros>) {
        let counted = self.counted();
        counted.as_ref().map_or((0, None), |(_, receiver)| (receiver.received(), receiver.last_arrival()))
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
        let counted = self.counted().take();
        counted.map(|(_, receiver)| receiver.finish(sent)).unwrap_or_default()
    }

    fn counted(&self) -> MutexGuard<'_, Option<(u16, Receiver)>> {
        self.counted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

const LOOK_INTERVAL: Duration = Duration::from_millis(10);
