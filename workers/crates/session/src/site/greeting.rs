use downburst_model::Now;

use super::{Connection, SiteSession, legs};
use crate::{FeedPosition, Hello, Proof, SiteEvent, Welcome};

impl SiteSession {
    pub(super) fn connected(&mut self, now: Now, proof: Proof) {
        self.end_session(now);
        self.connection = Connection::Greeting;
        self.heard = now.monotonic;
        let hello = Hello {
            versions: self.terms.versions.clone(),
            software: self.terms.software.clone(),
            proof,
            feeds: self.hello_positions(),
            stand_by: self.terms.stand_by.then_some(true),
            one_node: self.terms.one_node.then_some(true),
        };
        self.send(hello);
    }

    /// The hello's positions of each feed, without the highest ranges if there are too many. The hub sends
    /// their products again, and this side ignores them, since it knows them.
    fn hello_positions(&self) -> Vec<FeedPosition> {
        let own = self.positions().into_iter().filter(|own| !self.terms.resume_at.contains_key(&own.feed));
        let mut positions: Vec<FeedPosition> = own.chain(self.terms.resume_at.values().cloned()).collect();
        let ranges = HELLO_RANGES / positions.len().max(1);
        for position in &mut positions {
            position.settled = position.settled.iter().take(ranges.max(1)).collect();
        }
        positions
    }

    pub(super) fn take_welcome(&mut self, now: Now, welcome: Welcome) {
        if !self.terms.versions.contains(&welcome.version) {
            let version = welcome.version;
            return self.violation(now, format!("the hub chose version {version}, which was not offered"));
        }
        self.connection = Connection::Up;
        self.clock.start(now);
        self.name_hash = legs::name_hash(welcome.site.as_str());
        let stand_by = welcome.stand_by == Some(true);
        self.event(SiteEvent::Welcome { site: welcome.site, hub: welcome.hub, stand_by });
    }
}

/// The maximum number of ranges in a hello: at 20 bytes each they fit into a frame.
const HELLO_RANGES: usize = 32_768;
