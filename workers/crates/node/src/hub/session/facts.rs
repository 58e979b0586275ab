//! The facts that sessions look up at the hub.
use std::net::SocketAddr;

use downburst_hub::{HubFacts, Reference, SiteLine, Way};
use downburst_log::ProductLog as _;
use downburst_model::{Epoch, FeedName, LegId, Micros, Sequence, SiteName, WallMicros};

use crate::hub::Hub;
use crate::hub::feeds::sequence_checks;
use crate::hub::lock;

impl HubFacts for Hub {
    fn line(&self, site: &SiteName) -> Option<SiteLine> {
        self.roster.site(site)
    }

    fn may_take(&self, site: &SiteName, feed: &FeedName) -> bool {
        self.roster.may_take(site, feed)
    }

    fn is_open(&self, feed: &FeedName) -> bool {
        self.feeds.find(feed).is_some()
    }

    fn highest(&self, feed: &FeedName, epoch: Epoch) -> Option<Sequence> {
        sequence_checks::highest(self, feed, epoch)
    }

    fn find_time(&self, feed: &FeedName, time: WallMicros) -> Sequence {
        self.feeds.find(feed).map_or(Sequence(0), |open| open.log.find_time(time))
    }

    fn feed_of(&self, leg: LegId) -> Option<FeedName> {
        lock(&self.legs.plans).feed_of(leg)
    }

    fn is_too_slow(&self, now: Micros, site: &SiteName, leg: LegId) -> bool {
        lock(&self.legs.plans).is_too_slow(now, site, leg)
    }

    fn first_byte(&self, leg: LegId, sequence: Sequence) -> Option<WallMicros> {
        lock(&self.legs.plans).find(leg)?.first_byte(sequence)
    }

    fn reference(&self) -> Reference {
        *lock(&self.figures.reference)
    }

    fn late_bps(&self) -> Option<u64> {
        self.sessions.late_share.session_bps()
    }

    fn ways_to(&self, site: &SiteName) -> Vec<Way> {
        self.circuit_ways_to(site)
    }

    fn learnt(&self, site: &SiteName) -> usize {
        self.roster.learnt(site)
    }

    fn site_at(&self, peer: SocketAddr) -> Option<SiteName> {
        self.figures.tracer.site_at(peer)
    }

    fn hears(&self, port: u16) -> bool {
        self.legs.channels.hears(port)
    }
}
