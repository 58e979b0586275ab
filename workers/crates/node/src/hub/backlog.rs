//! The backlog of sites in the feeds that they take, counted by the hub's own logs, so that it is known of an
//! absent site, too.
//!
//! A site lacks the numbers of a log that it did not settle, as far as its subscriptions want the product and
//! the hub still has it: its next session begins with those. A site that never took a feed begins at the
//! log's head, and lacks nothing of it except ordered resends. Products whose bytes left the log in between
//! are lost for the site.
use std::collections::BTreeMap;
use std::sync::Mutex;

use downburst_hub::{handling, subscriptions};
use downburst_model::{Epoch, FeedName, RangeSet, SiteName};
use downburst_session::Filter;

use super::feeds::Feeds;
use super::{ByFeed, Hub, lock};
use crate::lines::{Event, FeedBacklog, SiteBacklog, SiteLine};
use counts::{Counts, Look};

mod census;
mod counts;

/// What the hub knows of where its sites stand, and what was counted for them.
#[derive(Default)]
pub(super) struct Backlogs {
    positions: Mutex<BTreeMap<SiteName, ByFeed<Position>>>,
    telling: Mutex<Telling>,
}

/// What a site has of a feed, as it said last.
#[derive(Clone, Debug)]
struct Position {
    /// As text, as the agent has it.
    epoch: String,
    settled: RangeSet,
    /// The agent remembered it from an earlier run of the node.
    is_old: bool,
}

#[derive(Default)]
struct Telling {
    counts: Counts,
    told: BTreeMap<SiteName, SiteBacklog>,
    number: u64,
}

impl Backlogs {
    /// A site said, or was told, where it stands.
    pub(super) fn stands(&self, site: &SiteName, feed: &FeedName, (epoch, settled): (Epoch, RangeSet)) {
        let position = Position { epoch: epoch.0.to_string(), settled, is_old: false };
        lock(&self.positions).entry(site.clone()).or_default().insert(feed.clone(), position);
    }

    /// What the agent knows of where sites stood, for those of which this run of the node was not told yet.
    pub(super) fn stood(&self, feeds: &Feeds, lines: &[SiteLine]) {
        let mut positions = lock(&self.positions);
        for line in lines.iter().filter(|line| !line.positions.is_empty()) {
            let known = positions.entry(line.site.clone()).or_default();
            for told in &line.positions {
                let is_of_log =
                    feeds.find(&told.feed).is_some_and(|it| it.epoch().0.to_string() == told.epoch);
                let mut settled = RangeSet::new();
                settled.insert(0, told.settled_to.0);
                let position = Position { epoch: told.epoch.clone(), settled, is_old: true };
                match known.get(&told.feed) {
                    None => drop(known.insert(told.feed.clone(), position)),
                    // It stood in several logs: that of today counts.
                    Some(other) if other.is_old && is_of_log => {
                        drop(known.insert(told.feed.clone(), position))
                    }
                    Some(_) => {}
                }
            }
        }
    }

    fn position(&self, site: &SiteName, feed: &FeedName) -> Option<Position> {
        lock(&self.positions).get(site)?.get(feed).cloned()
    }
}

impl Hub {
    /// Reports the backlog of sites to the agent, where it changed since the last report; each site from time
    /// to time, for reports that the agent missed.
    pub(super) fn tell_backlogs(&self) {
        let mut telling = lock(&self.backlogs.telling);
        let Telling { counts, told, number } = &mut *telling;
        *number = number.wrapping_add(1);
        counts.begin();
        let (mut news, mut all) = (Vec::new(), BTreeMap::new());
        for (place, line) in (0_u64..).zip(self.roster.all()) {
            let Some(line) = self.counted_here(line) else { continue };
            let backlog = self.backlog(&line, counts);
            if place % TURNS == *number % TURNS || told.get(&line.site) != Some(&backlog) {
                news.push(backlog.clone());
            }
            all.insert(line.site, backlog);
        }
        *told = all;
        counts.forget_unused();
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
                position: self.backlogs.position(&line.site, &name),
                resends: line.resends.iter().filter(|it| it.feed == name).collect(),
                left: lock(&self.resends_left).of(&line.site, &line.resends),
                max_age_us: handling(line).iter().find(|it| it.feed == name).and_then(|it| it.max_age_us),
                is_connected,
                now: self.clock.wall(),
                feed: &feed,
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

/// Each site is told at least once in so many tellings.
const TURNS: u64 = 30;
