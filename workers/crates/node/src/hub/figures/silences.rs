//! Silences of feeds: each sign is written immediately, as a circuit may be ordered for it.
use std::sync::{Arc, Mutex};
use std::time::Duration;

use downburst_hub::{SilenceLine, SilenceSign};
use downburst_model::ProductInfo;
use tokio::sync::Notify;

use crate::hub::{Hub, lock};
use crate::lines::Event;

/// The watched feeds.
#[derive(Default)]
pub(in crate::hub) struct Silences {
    machine: Mutex<downburst_hub::Silences>,
    /// The deadline may be earlier than before.
    changed: Notify,
}

impl Hub {
    /// Counts a product that was stored as it came in.
    pub(in crate::hub) fn arrived(&self, product: &ProductInfo) {
        self.counters.arrived(&product.key.feed, product.size);
        let silences = &self.figures.silences;
        let mut machine = lock(&silences.machine);
        let signs = machine.arrived(&product.key.feed, product.stored, self.clock.now());
        // Under the lock: the signs of a feed are written in their order.
        if self.tell_silences(signs) {
            silences.changed.notify_one();
        }
    }

    /// Replaces the feeds whose silences are reported.
    pub(in crate::hub) fn watch_silences(&self, lines: Vec<SilenceLine>) {
        lock(&self.figures.silences.machine).watch(lines);
        self.figures.silences.changed.notify_one();
    }

    /// Reports silences that have lasted long enough, and returns the time until the next one may have.
    fn tell_passed_silences(&self) -> Option<Duration> {
        let mut machine = lock(&self.figures.silences.machine);
        let now = self.clock.monotonic();
        self.tell_silences(machine.passed(now));
        machine.deadline().map(|due| Duration::from_micros(due.since(now).0).max(SHORTEST_PAUSE))
    }

    fn tell_silences(&self, signs: Vec<SilenceSign>) -> bool {
        let any = !signs.is_empty();
        signs.into_iter().for_each(|sign| self.event(&Event::of_silence(sign)));
        any
    }
}

/// Reports the silences of the watched feeds until the hub stops.
pub(in crate::hub) async fn tend(hub: Arc<Hub>) {
    let mut stopping = hub.stopping.subscribe();
    loop {
        let pause = hub.tell_passed_silences().unwrap_or(LONGEST_PAUSE);
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = hub.figures.silences.changed.notified() => {}
            _ = stopping.wait_for(|stop| *stop) => return,
        }
    }
}

const SHORTEST_PAUSE: Duration = Duration::from_millis(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(3_600);
