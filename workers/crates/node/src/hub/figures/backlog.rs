//! Counts the backlogs of sites in the logs of this node, and reports them to the agent.
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use downburst_hub::{BacklogFacts, CountedLog, LookedBack, Position, Positions, site_backlog};
use downburst_log::{LogError, ProductLog as _};
use downburst_model::{Epoch, FeedName, ProductInfo, RangeSet, Sequence, SiteName, WallMicros};
use downburst_session::ResendLeft;

use crate::hub::feeds::{Feed, Feeds};
use crate::hub::{Hub, lock};
use crate::lines::{Event, SiteLine};

/// The known positions of sites, and the backlogs counted from them.
#[derive(Default)]
pub(in crate::hub) struct Backlogs {
    positions: Mutex<Positions>,
    telling: Mutex<downburst_hub::Backlogs>,
}

impl Backlogs {
    /// Notes the position that a site reported or received.
    pub(in crate::hub) fn stands(&self, site: &SiteName, feed: &FeedName, position: (Epoch, RangeSet)) {
        lock(&self.positions).stands(site, feed, position);
    }

    /// Notes positions that the agent remembers, for sites that have no position in this run of the node yet.
    pub(in crate::hub) fn stood(&self, feeds: &Feeds, lines: &[SiteLine]) {
        lock(&self.positions).stood(lines, |feed| feeds.find(feed).map(|open| open.epoch()));
    }
}

impl Hub {
    /// Reports the backlogs that changed since the last report to the agent; each site is repeated from time to time,
    /// in case the agent missed a report.
    pub(in crate::hub) fn tell_backlogs(&self) {
        let sender = self.start.sender.as_ref().map(|sender| sender.address.as_str());
        let news = lock(&self.figures.backlogs.telling)
            .tell(self.roster.all(), |line, counts| site_backlog(self, line, sender, counts));
        if !news.is_empty() {
            self.event(&Event::Backlog { sites: news });
        }
    }
}

impl BacklogFacts for Hub {
    type Log = Feed;

    fn log(&self, feed: &FeedName) -> Option<Arc<Feed>> {
        self.feeds.find(feed)
    }

    fn position(&self, site: &SiteName, feed: &FeedName) -> Option<Position> {
        lock(&self.figures.backlogs.positions).of(site, feed)
    }

    fn resends_left(&self, line: &SiteLine) -> BTreeMap<u64, ResendLeft> {
        lock(&self.sessions.resends_left).of(&line.site, &line.resends)
    }

    fn stands_by(&self, site: &SiteName) -> Option<bool> {
        self.roster.registry().find(site).map(|handle| handle.stand_by)
    }

    fn now(&self) -> WallMicros {
        self.clock.wall()
    }

    fn unreadable(&self, site: &SiteName, feed: &FeedName, error: LogError) {
        tracing::warn!(%site, %feed, %error, "the backlog of a site can't be counted");
    }
}

impl CountedLog for Feed {
    type Error = LogError;

    fn feed(&self) -> &FeedName {
        self.log.feed()
    }

    fn epoch(&self) -> Epoch {
        self.log.epoch()
    }

    fn head(&self) -> Sequence {
        self.log.head()
    }

    /// The copy of a shared log has lost nothing: its node fetches the products that it no longer holds.
    fn first_kept(&self) -> Sequence {
        if self.shared.is_some() { Sequence(0) } else { self.log.first() }
    }

    fn find_time(&self, time: WallMicros) -> Sequence {
        self.log.find_time(time)
    }

    fn look_back(
        &self,
        after: Sequence,
        before: Sequence,
        most: u64,
        visit: &mut dyn FnMut(&ProductInfo),
    ) -> Result<LookedBack, LogError> {
        let looked = self.log.look_back(after, before, most, |info, _| {
            visit(info);
            std::ops::ControlFlow::Continue(())
        })?;
        let (shown, complete, searched_to) = (looked.shown, looked.complete, looked.searched_to);
        Ok(LookedBack { shown, complete, searched_to })
    }
}
