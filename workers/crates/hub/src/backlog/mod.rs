//! The backlog of sites in the feeds that they take, counted by the hub's own logs, so that it is known of an
//! absent site, too.
//!
//! A site lacks the numbers of a log that it did not settle, as far as its subscriptions want the product and
//! the hub still has it: its next session begins with those. A site that never took a feed begins at the
//! log's head, and lacks nothing of it except ordered resends. Products whose bytes left the log in between
//! are lost for the site.
mod census;
mod counts;
mod positions;
#[cfg(test)]
mod testlog;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use downburst_model::{Epoch, FeedName, Lane, ProductInfo, Sequence, SiteName, WallMicros};
use downburst_session::{ResendLeft, ResendOrder};
use serde::Serialize;

use crate::sites::{ResendKind, ResendLine, SiteLine};

pub use counts::{Counts, Look};
pub use positions::{Position, Positions};

/// A feed's log, as far as backlogs are counted by it.
pub trait CountedLog {
    /// Why it can't be read.
    type Error;

    /// The feed.
    fn feed(&self) -> &FeedName;

    /// The life of the log.
    fn epoch(&self) -> Epoch;

    /// The last number.
    fn head(&self) -> Sequence;

    /// The first number whose bytes the log still has, or gets back where a site asks for them.
    fn first_kept(&self) -> Sequence;

    /// The last number stored before a time; 0 if none.
    fn find_time(&self, time: WallMicros) -> Sequence;

    /// Visits products backwards, from below `before` to above `after`, at most so many.
    fn look_back(
        &self,
        after: Sequence,
        before: Sequence,
        most: u64,
        visit: &mut dyn FnMut(&ProductInfo),
    ) -> Result<LookedBack, Self::Error>;
}

/// How far a look back came.
#[derive(Clone, Copy, Debug)]
pub struct LookedBack {
    /// Products that were visited.
    pub shown: u64,
    /// All of them.
    pub complete: bool,
    /// The lowest number that was looked at.
    pub searched_to: Sequence,
}

/// What a site lacks of its feeds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SiteBacklog {
    /// The site.
    pub site: SiteName,
    /// Each feed that the site takes and that is open here.
    pub feeds: Vec<FeedBacklog>,
}

/// What a site lacks of a feed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FeedBacklog {
    /// The feed.
    pub feed: FeedName,
    /// False: the site stands in another log, and the rest is nothing.
    pub known: bool,
    /// What it gets as soon as it connects.
    pub products: u64,
    /// Their bytes.
    pub bytes: u64,
    /// When the oldest of them was stored.
    pub oldest_us: Option<WallMicros>,
    /// What left the hub's log before the site had it.
    pub lost_products: u64,
    /// Its bytes.
    pub lost_bytes: u64,
    /// The count goes on: it is at least so much.
    pub counting: bool,
}

impl FeedBacklog {
    /// Of a site that has everything.
    pub fn nothing(feed: FeedName) -> Self {
        let (products, bytes, oldest_us, lost_products, lost_bytes) = (0, 0, None, 0, 0);
        Self { feed, known: true, products, bytes, oldest_us, lost_products, lost_bytes, counting: false }
    }

    /// Of a site that stands in another log.
    pub fn not_known(feed: FeedName) -> Self {
        Self { known: false, ..Self::nothing(feed) }
    }
}

/// What was counted for sites, and what was told of them.
#[derive(Default)]
pub struct Backlogs {
    counts: Counts,
    told: BTreeMap<SiteName, SiteBacklog>,
    number: u64,
}

impl Backlogs {
    /// The backlogs of sites that changed since the last telling; each site's from time to time, for tellings that
    /// were missed. `count` counts one, and leaves out a site that is not this node's.
    pub fn tell(
        &mut self,
        lines: impl IntoIterator<Item = SiteLine>,
        mut count: impl FnMut(SiteLine, &mut Counts) -> Option<SiteBacklog>,
    ) -> Vec<SiteBacklog> {
        self.number = self.number.wrapping_add(1);
        self.counts.begin();
        let (mut news, mut all) = (Vec::new(), BTreeMap::new());
        for (place, line) in (0_u64..).zip(lines) {
            let Some(backlog) = count(line, &mut self.counts) else { continue };
            if place % TURNS == self.number % TURNS || self.told.get(&backlog.site) != Some(&backlog) {
                news.push(backlog.clone());
            }
            all.insert(backlog.site.clone(), backlog);
        }
        self.told = all;
        self.counts.forget_unused();
        news
    }
}

/// What a line asks for, in the numbers of its feed's log as they are now.
pub fn resend_order<L: CountedLog>(log: &L, line: &ResendLine, left: Option<ResendLeft>) -> ResendOrder {
    ResendOrder {
        resend: line.resend,
        feed: line.feed.clone(),
        epoch: log.epoch(),
        after: log.find_time(line.from_us),
        to: log.find_time(line.to_us),
        lane: match line.kind {
            ResendKind::Resend => Lane::Resend,
            ResendKind::Backfill => Lane::Backfill,
        },
        wanted: line.wanted.clone(),
        had: line.had.clone(),
        within: line.within.clone(),
        left,
    }
}

/// Each site is told at least once in so many tellings.
const TURNS: u64 = 30;
