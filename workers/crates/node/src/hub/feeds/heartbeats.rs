//! Heartbeats: the hub puts one into every subscribed feed each few seconds, and each session remembers the last one
//! that came out at its site.
use std::collections::BTreeSet;

use downburst_hub::feeds::Heartbeat;
use downburst_model::{FeedName, ProductInfo};

use crate::hub::feeds::Feed;
use crate::hub::feeds::feed_writer::{Done, Spooled, Write};
use crate::hub::{Hub, lock};

impl Hub {
    /// Puts a heartbeat into each feed with subscribed sites that acknowledge heartbeats, including feeds of
    /// senders, whose sites acknowledge them there.
    pub(in crate::hub) fn put_heartbeats(&self) {
        let takes = |handle: &crate::hub::roster::Handle| {
            lock(&handle.status).heartbeats.keys().cloned().collect::<Vec<FeedName>>()
        };
        let mut taken: BTreeSet<FeedName> =
            self.roster.look_at_sessions(|(_, handle)| Some(takes(handle))).into_iter().flatten().collect();
        taken.extend(self.roster.placed_feeds());
        for feed in taken.iter().filter_map(|name| self.feeds.find(name)) {
            self.put_heartbeat_into(&feed);
        }
    }

    /// Notes a heartbeat that is in the log: the sessions that take the feed await its acknowledgement.
    pub(in crate::hub) fn put_heartbeat(&self, info: &ProductInfo) {
        let (key, seen) = (&info.key, self.clock.monotonic());
        self.roster.look_at_sessions(|(_, handle)| {
            let mut status = lock(&handle.status);
            let waited =
                status.heartbeats.get_mut(&key.feed)?.put(key.epoch, key.sequence, info.stored, seen);
            status.account.changed_if(waited);
            Some(())
        });
    }

    fn put_heartbeat_into(&self, feed: &Feed) {
        let now = self.clock.wall();
        let Some(heartbeat) = Heartbeat::at(now, &self.start.name, &self.start.origin) else { return };
        let Heartbeat { id, origin, bytes } = heartbeat;
        feed.write(Write {
            bytes: Spooled::AtHand(bytes),
            id,
            origin,
            created: Some(now),
            digest: None,
            ldm: None,
            properties: None,
            done: Done::Nobody,
        });
    }
}
