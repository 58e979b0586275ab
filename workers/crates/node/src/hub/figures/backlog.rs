//! Counts the backlogs of sites in the logs of this node, and reports them to the agent.
use std::sync::Mutex;

use downburst_hub::{
    CountedLog, Counts, FeedBacklog, Look, LookedBack, Positions, SiteBacklog, handling, subscriptions,
};
use downburst_log::{LogError, ProductLog as _};
use downburst_model::{Epoch, FeedName, ProductInfo, RangeSet, Sequence, SiteName, WallMicros};
use downburst_session::Filter;

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
        let news = lock(&self.figures.backlogs.telling).tell(self.roster.all(), |line, counts| {
            let line = self.counted_here(line)?;
            Some(self.backlog(&line, counts))
        });
        if !news.is_empty() {
            self.event(&Event::Backlog { sites: news });
        }
    }

    /// The part of a site that this node serves, if it serves any. A site with an LDM of its own sends its
    /// own requests, and the position of a site that takes its feeds from another hub is not known here.
    fn counted_here(&self, line: SiteLine) -> Option<SiteLine> {
        let is_others = self.start.sender.is_some() && line.nodes.is_empty();
        let stands_by = || self.roster.session(&line.site).is_some_and(|handle| handle.stand_by);
        let counts = line.active && line.ldm_host.is_none() && !is_others && !stands_by();
        counts.then(|| line.served_at(self.start.own_address()))
    }

    fn backlog(&self, line: &SiteLine, counts: &mut Counts) -> SiteBacklog {
        let is_connected = self.roster.session(&line.site).is_some();
        let mut feeds = Vec::new();
        for (name, filter) in Filter::of_subscriptions(&subscriptions(line)) {
            let Some(feed) = self.feeds.find(&name) else { continue };
            let look = Look {
                position: lock(&self.figures.backlogs.positions).of(&line.site, &name),
                resends: line.resends.iter().filter(|it| it.feed == name).collect(),
                left: lock(&self.sessions.resends_left).of(&line.site, &line.resends),
                max_age_us: handling(line).iter().find(|it| it.feed == name).and_then(|it| it.max_age_us),
                is_connected,
                now: self.clock.wall(),
                log: &*feed,
                filter,
            };
            feeds.push(look.lacking(counts).unwrap_or_else(|error| {
                tracing::warn!(site = %line.site, feed = %name, %error, "the backlog of a site can't be counted");
                FeedBacklog::not_known(name)
            }));
        }
        SiteBacklog { site: line.site.clone(), feeds }
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
