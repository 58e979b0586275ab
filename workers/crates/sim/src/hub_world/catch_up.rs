//! Streams that repeat a stretch of a log beside a leg.
use downburst_hub::{LegInput, SessionInput};
use downburst_model::{FeedName, LegId, Machine as _, Micros, Now, Sequence};
use downburst_session::{FIRST_CATCH_UP, HubInput};

use super::HubWorld;
use super::hub::Hub;
use super::legs::{LegPlan, SimLeg};
use super::site::Site;

impl HubWorld {
    /// Sites with a leg hold the backfill of its feed for so long when they connect.
    pub fn hold_backfill(&mut self, hold: Micros) {
        self.hub.hold = hold;
    }

    /// The end of a feed's log.
    pub fn head(&self, feed: &FeedName) -> Sequence {
        self.hub.logs.get(feed).map(|log| log.head()).unwrap_or_default()
    }

    /// Begins a stream that repeats `after+1..=to` of a feed, and offers it to these sites; its products leave with
    /// [`go`](Self::go).
    pub fn begin_stream(
        &mut self,
        feed: &FeedName,
        (after, to): (Sequence, Sequence),
        sites: &[usize],
        rate_bps: u64,
    ) -> LegId {
        let clocks = self.clocks();
        self.hub.lives += 1;
        let leg = LegId(FIRST_CATCH_UP + self.hub.legs.len() as u32);
        let plan = LegPlan { leg, feed: feed.clone(), rate_bps, repair_window_bytes: 64 << 20 };
        let epoch = self.hub.logs.get(feed).map(|log| log.epoch).expect("the feed exists");
        let mut stream = SimLeg::new(clocks.monotonic, plan, self.hub.lives, (epoch, after));
        for index in sites {
            let Some(site) = self.sites.get_mut(*index) else { continue };
            let join = stream.offer(clocks, site);
            site.tell_hub(clocks, &self.hub, SessionInput::CatchUp(Box::new(join), to));
        }
        stream.machine.handle(clocks, LegInput::Listener);
        self.hub.legs.insert(leg, stream);
        leg
    }

    /// Lets the products of a stream leave.
    pub fn go(&mut self, leg: LegId, to: Sequence) {
        let clocks = self.clocks();
        if let Some(stream) = self.hub.legs.get_mut(&leg) {
            stream.machine.handle(clocks, LegInput::Head(to));
        }
    }

    /// The UDP payload that a leg has sent so far, with repairs.
    pub fn sent_bytes(&self, leg: LegId) -> u64 {
        self.hub.legs.get(&leg).map_or(0, |leg| {
            let stats = leg.machine.stats();
            stats.datagram_bytes + stats.site_repair_bytes
        })
    }

    /// Has all sites leave a stream.
    pub fn end_stream(&mut self, leg: LegId) {
        let clocks = self.clocks();
        for site in &mut self.sites {
            site.tell_hub(clocks, &self.hub, SessionInput::Pass(HubInput::LeaveLeg(leg)));
        }
    }
}

impl Hub {
    pub(super) fn hold_backfill(&self, now: Now, site: &mut Site) {
        if self.hold == Micros(0) {
            return;
        }
        let feeds: Vec<FeedName> = site.plan.keys().cloned().collect();
        for feed in feeds {
            let hold = HubInput::HoldBackfill { feed, until: now.monotonic.plus(self.hold) };
            site.tell_hub(now, self, SessionInput::Pass(hold));
        }
    }
}
