//! The search for stalled products.
use downburst_model::{Micros, Now};

use super::SiteSession;

impl SiteSession {
    /// Searches for stalled products.
    pub(super) fn scan(&mut self, now: Now) {
        if self.scan_at.take_if(|at| *at <= now.monotonic).is_none() {
            return;
        }
        let legs = &self.legs;
        for track in self.tracks.values_mut() {
            track.ask_stalled(now, |leg| legs.get(&leg).and_then(|leg| leg.gave_up_at));
        }
        let mut searches = false;
        for leg in self.legs.values_mut() {
            let deadline = self.order.deadlines_us.get(&leg.join.feed).copied().map(Micros);
            if let Some(track) = self.tracks.get_mut(&leg.join.feed) {
                track.ask_unknown(now, leg.lasting_holes(now, deadline));
            }
            searches |= deadline.is_some() && !leg.is_searched();
        }
        let awaited = self.tracks.values().any(|track| track.pending_count() > 0);
        if awaited || searches || self.legs.values().any(|leg| leg.lost_lately(now)) {
            self.scan_at = Some(now.monotonic.plus(SCAN_INTERVAL));
        }
    }

    /// Schedules a search for stalled products within `length` at the latest.
    pub(super) fn scan_within(&mut self, now: Now, length: Micros) {
        let at = now.monotonic.plus(length);
        self.scan_at = Some(self.scan_at.map_or(at, |known| known.min(at)));
    }
}

/// The interval between searches for stalled products.
const SCAN_INTERVAL: Micros = Micros::from_secs(1);
